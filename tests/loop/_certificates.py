"""Certificates for tests, made by openssl once for a test program, in a folder that goes with it."""

import atexit
import functools
import pathlib
import shutil
import subprocess
import tempfile

NAMES = "subjectAltName=DNS:localhost,DNS:*.example.org,IP:127.0.0.1"
P256 = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")


@functools.cache
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="penstock-certificates-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def make(name, subject, key=P256, more=()):
    """A pair of files, the certificate and its key."""
    chain, private = folder() / f"{name}.pem", folder() / f"{name}.key"
    if not chain.exists():
        openssl("req", "-x509", "-newkey", *key, "-nodes", "-days", 30, "-subj", subject, "-keyout", private, "-out", chain, *more)
    return chain, private


def signed(name, subject, more=()):
    chain, private = authority()
    return make(name, subject, more=("-CA", chain, "-CAkey", private, *more))


def authority():
    return make("authority", "/CN=Authority")


def ecdsa():
    return make("ecdsa", "/CN=localhost", more=("-addext", NAMES))


def rsa():
    return make("rsa", "/CN=localhost", ("rsa:2048",), ("-addext", NAMES))


def ed25519():
    return make("ed25519", "/CN=localhost", ("ed25519",), ("-addext", NAMES))


def other():
    return make("other", "/CN=other", more=("-addext", "subjectAltName=DNS:other.example.net"))


def client():
    return signed("client", "/C=NZ/O=Example/CN=alice")


def stranger():
    return make("stranger", "/CN=mallory")


def fingerprint(chain):
    """SHA-256, in small letters."""
    line = openssl("x509", "-in", chain, "-noout", "-fingerprint", "-sha256")
    return line.split("=")[1].strip().replace(":", "").lower()
