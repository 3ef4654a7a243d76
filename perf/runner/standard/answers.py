"""What has to come back for each scenario. Who answers something else does other work."""

import http.client
import json
import shutil

from .. import site as sites
from ..arguments import ROOT
from ..http_peers import HELLO, JSON
from ..tools import Failure

HOME = ROOT / "docs/examples/site/index.html"
FILES = tuple(file for file in sites.FILES if file.size <= 1 << 20)
ANSWER_LIMIT_S = 10
LINE_BYTES = 64
TEXTS = {"/medium": 1 << 10, "/large": 100 << 10}  # of the program's routes to try
ROUTES = {"/api/v1/resource500/7/parts": b"ok", "/layers/plaintext": HELLO.encode()}


def make_site(folder):
    sites.make_files(folder, FILES)
    shutil.copyfile(HOME, folder / "index.html")


def json_of(size):
    """What penstock_load sends by --json."""
    return b'"' + b"x" * (size - 2) + b'"'


def text_of(size):
    """What the program makes of so many bytes: numbered lines."""
    lines = size // LINE_BYTES + 1
    return b"".join(b"%06d" % line + b"." * (LINE_BYTES - 7) + b"\n" for line in range(lines))[:size]


def expected_body(scenario, folder):
    """Of the answer; of one to HEAD, that whose length it tells."""
    path = scenario.path
    if scenario.program == "floor":
        return b"x" * len(HELLO)
    if path == "/plaintext":
        return HELLO.encode()
    if path == "/json":
        return JSON.encode()
    if path == "/echo":
        return json_of(scenario.sent_bytes) if scenario.sent_bytes else b""
    if path in TEXTS:
        return text_of(TEXTS[path])
    if path in ROUTES:
        return ROUTES[path]
    return (folder / (path[1:] or "index.html")).read_bytes()


def check_answer(port, scenario, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_LIMIT_S)
    sent = json_of(scenario.sent_bytes) if scenario.sent_bytes else None
    fields = {"Content-Type": "application/json"} if sent else {}
    try:
        connection.request(scenario.method, scenario.path, sent, fields)
        response = connection.getresponse()
        length = response.getheader("Content-Length")
        received = response.read(len(body) + 1)
    except (OSError, http.client.HTTPException) as problem:
        raise Failure(f"{scenario.path} was asked for: {problem!r}") from problem
    finally:
        connection.close()
    if response.status != 200:
        raise Failure(f"{scenario.path} is answered with status {response.status} instead of 200")
    if length != str(len(body)):
        raise Failure(f"{scenario.path} is answered with {json.dumps(length)} as its length instead of {len(body)}")
    if received != (b"" if scenario.method == "HEAD" else body):
        raise Failure(f"{scenario.path} is answered with another body than was expected")
