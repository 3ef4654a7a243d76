"""The servers of small answers that are here, each started for one purpose: asked for /plaintext, one thread, one core."""

import contextlib
import re

from . import http_peers
from .arguments import ROOT, selected
from .same_core import Scenario
from .servers import Refused
from .tools import Failure

SCENARIO = Scenario("rest", 1)
REQUEST = b"GET /plaintext HTTP/1.1\r\nHost: localhost\r\n\r\n"


def peers_at_hand(floor, program, only=None):
    """Those that are installed, ours first and the floor last; and the names of the others with their packages."""
    site = ROOT / "build/perf/bodies"
    http_peers.make_site(site)
    reference, *others = http_peers.http_peers(floor, program, site, http_peers.others_at_hand(), [])
    everybody = [*others, reference]
    if only is not None:
        everybody = selected(everybody, only)
    return ([peer for peer in everybody if not peer.package],
            [f"{peer.name} (Debian package {peer.package})" for peer in everybody if peer.package])


@contextlib.contextmanager
def telling_refusals(name):
    try:
        yield
    except Refused as refusal:
        raise Failure(f"{name} refuses an option: {refusal}") from refusal


def ask(connection, name):
    """One request and its whole answer."""
    connection.sendall(REQUEST)
    head = body = b""
    while b"\r\n\r\n" not in head:
        head += piece_from(connection, name)
    head, _, body = head.partition(b"\r\n\r\n")
    length = re.search(rb"^content-length: *(\d+)\r?$", head, re.M | re.I)
    if not head.startswith(b"HTTP/1.1 200 ") or length is None or int(length.group(1)) != SCENARIO.size:
        raise Failure(f"{name} answered something else than was expected: {head[:200]}")
    while len(body) < SCENARIO.size:
        body += piece_from(connection, name)


def piece_from(connection, name):
    piece = connection.recv(4096)
    if not piece:
        raise Failure(f"{name} has ended a connection before its answer did: it may not be configured for so many")
    return piece
