"""What a client of TLS needs to make records and hellos that no library would: ChaCha20-Poly1305 (RFC 8439), the key schedules of TLS
1.2 and 1.3, and messages by their parts. For tests: slow, and not safe against anybody who measures time.
"""

import hmac
import os
import struct

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23
SUITES = "TLS13-CHACHA20-POLY1305-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305"  # for --tls-suites


def vector(size, content):
    """Behind its length, which takes so many bytes."""
    return len(content).to_bytes(size, "big") + content


def record(kind, content, version=b"\3\3"):
    return bytes([kind]) + version + vector(2, content)


def message(kind, content):
    return bytes([kind]) + vector(3, content)


def in_records(data, size):
    return b"".join(record(HANDSHAKE, data[at : at + size]) for at in range(0, len(data), size))


# ---- Hellos


def extension(kind, content):
    return struct.pack(">H", kind) + vector(2, content)


def server_names(*names):
    return extension(0, vector(2, b"".join(b"\0" + vector(2, name) for name in names)))


def protocols(*names):
    return extension(16, vector(2, b"".join(vector(1, name) for name in names)))


BASIC = (
    extension(10, vector(2, b"\x00\x1d\x00\x17")) + extension(11, vector(1, b"\0")) + extension(23, b"")
    + extension(13, vector(2, b"\x04\x03\x08\x04\x04\x01"))
)


def hello(*more, tls13=True, suites=None, version=b"\3\3", session_id=b""):
    """With what a client must say, and more extensions behind that."""
    extensions = BASIC
    if tls13:
        extensions += extension(43, vector(1, b"\3\4\3\3"))
        extensions += extension(51, vector(2, b"\x00\x1d" + vector(2, b"\x09" + os.urandom(30) + b"\x01")))
    suites = suites or (b"\x13\x03" if tls13 else b"\xcc\xa9")
    content = version + os.urandom(32) + vector(1, session_id) + vector(2, suites) + b"\1\0"
    return message(1, content + vector(2, extensions + b"".join(more)))


# ---- ChaCha20-Poly1305


def chacha20_block(key, counter, nonce):
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8L", key), counter, *struct.unpack("<3L", nonce)]
    x = start[:]

    def quarter(a, b, c, d):
        for into, by, turned, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[into] = (x[into] + x[by]) & 0xFFFFFFFF
            mixed = x[turned] ^ x[into]
            x[turned] = (mixed << bits | mixed >> (32 - bits)) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter(i, i + 4, i + 8, i + 12)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16L", *((one + other) & 0xFFFFFFFF for one, other in zip(x, start)))


def poly1305(key, data):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(data), 16):
        total = (total + int.from_bytes(data[at : at + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return ((total + int.from_bytes(key[16:32], "little")) & ((1 << 128) - 1)).to_bytes(16, "little")


def seal(key, nonce, plain, known):
    blocks = (chacha20_block(key, 1 + i, nonce) for i in range((len(plain) + 63) // 64))
    stream = b"".join(blocks)[: len(plain)]
    sealed = (int.from_bytes(plain, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(plain), "big")

    def padded(data):
        return data + bytes(-len(data) % 16)

    tag = poly1305(chacha20_block(key, 0, nonce)[:32], padded(known) + padded(sealed) + struct.pack("<QQ", len(known), len(sealed)))
    return sealed + tag


# ---- Key schedules


def expand_label(secret, label, size):
    """RFC 8446 section 7.1, with SHA-256 and no context."""
    info = struct.pack(">H", size) + vector(1, b"tls13 " + label) + b"\0"
    return hmac.digest(secret, info + b"\1", "sha256")[:size]


def key_block(master, seed, size):
    """RFC 5246 section 6.3."""
    seed = b"key expansion" + seed
    block, a = b"", seed
    while len(block) < size:
        a = hmac.digest(master, a, "sha256")
        block += hmac.digest(master, a + seed, "sha256")
    return block[:size]


class Sealer13:
    """Records of TLS 1.3 under one secret."""

    def __init__(self, secret):
        self.change(secret)

    def change(self, secret):
        self.secret, self.number = secret, 0
        self.key, self.iv = expand_label(secret, b"key", 32), expand_label(secret, b"iv", 12)

    def record(self, kind, content, padding=0):
        return self.raw(content + bytes([kind]) + bytes(padding))

    def raw(self, inner):
        head = b"\x17\3\3" + struct.pack(">H", len(inner) + 16)
        nonce = (int.from_bytes(self.iv, "big") ^ self.number).to_bytes(12, "big")
        self.number += 1
        return head + seal(self.key, nonce, inner, head)

    def key_update(self, wanted=b"\0"):
        made = self.record(HANDSHAKE, message(24, wanted))
        self.change(expand_label(self.secret, b"traffic upd", 32))
        return made


class Sealer12:
    """Records of TLS 1.2 behind Finished (RFC 7905)."""

    def __init__(self, master, client_random, server_random):
        block = key_block(master, server_random + client_random, 88)
        self.key, self.iv, self.number = block[:32], block[64:76], 1

    def record(self, kind, content):
        known = self.number.to_bytes(8, "big") + bytes([kind]) + b"\3\3" + struct.pack(">H", len(content))
        nonce = (int.from_bytes(self.iv, "big") ^ self.number).to_bytes(12, "big")
        self.number += 1
        return record(kind, seal(self.key, nonce, content, known))


def secrets_of(path):
    """Of a key log: the client's random and the secret by label."""
    found = {}
    with open(path, encoding="ascii") as log:
        lines = log.readlines()
    for line in lines:
        if not line.startswith("#"):
            label, random, secret = line.split()
            found[label] = (bytes.fromhex(random), bytes.fromhex(secret))
    return found
