#!/usr/bin/env python3
"""Runs the program of docs/GUIDE.md, which is the argument, and asks it whether it does what the guide says."""

import http.client
import pathlib
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

LIMIT_S = 30
LARGE = bytes(range(256)) * 2_000


class Guide:
    """The program, and how it is asked."""

    def __init__(self, program, directory):
        self.process = subprocess.Popen([pathlib.Path(program).resolve()], cwd=directory, stdout=subprocess.PIPE)
        waiter = selectors.DefaultSelector()
        waiter.register(self.process.stdout, selectors.EVENT_READ)
        assert waiter.select(LIMIT_S), "it does not tell its port"
        self.port = int(self.process.stdout.readline())

    def ask(self, method, path, body=None, **fields):
        """Status, fields and body."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        client.request(method, path, body, {name.replace("_", "-"): value for name, value in fields.items()})
        response = client.getresponse()
        answer = response.status, response.headers, response.read()
        client.close()
        return answer

    def get(self, path, **fields):
        return self.ask("GET", path, **fields)

    def expect(self, path, body, status=200, **fields):
        answer = self.get(path, **fields)
        assert (answer[0], answer[2].decode()) == (status, body), (path, answer)

    def connect(self, request):
        connection = socket.create_connection(("127.0.0.1", self.port), LIMIT_S)
        connection.sendall(request)
        return connection

    def wait_for(self, path, done, **fields):
        deadline = time.monotonic() + LIMIT_S
        while not done(self.get(path, **fields)[2].decode()):
            assert time.monotonic() < deadline, path
            time.sleep(0.01)


def read_to_end(connection):
    text = b""
    while data := connection.recv(1 << 16):
        text += data
    connection.close()
    return text


def check_routes(guide):
    guide.expect("/", "home\n")
    guide.expect("/users/7", "user 7\n")
    guide.expect("/users/a%2Fb", "user a/b\n")
    guide.expect("/users/me", "you\n")
    guide.expect("/tree/a/b", "a/b")
    guide.expect("/tree/", "")
    guide.expect("/tree", "nothing at /tree\n", 404)
    guide.expect("/api/version", '{"version":1}')
    assert guide.ask("HEAD", "/users/7")[0] == 200
    status, fields, _ = guide.ask("DELETE", "/users/7")
    assert (status, fields["Allow"]) == (405, "GET, HEAD, OPTIONS"), fields["Allow"]


def check_requests(guide):
    guide.expect("/search?x=1&q=two+w%6Frds", "two words|me|y|dark", User_Agent="me", x_custom="y",
                 Cookie="a=b; theme=dark")
    guide.expect("/search", "?q= is missing\n", 400)
    assert guide.ask("POST", "/login", "user=J%C3%BCrgen+K")[2].decode() == "hello, Jürgen K\n"
    assert guide.ask("POST", "/login", "user=%zz")[0] == 400
    assert guide.ask("POST", "/login", "a&" * 21)[0] == 400


def check_responses(guide, directory):
    status, fields, body = guide.ask("POST", "/notes")
    assert (status, fields["Location"], fields["Content-Type"], body) == (
        201, "/notes/1", "application/json", b'{"id":1}'), (status, fields)
    status, fields, body = guide.get("/old")
    assert (status, fields["Location"], body) == (308, "/", b"")
    assert guide.get("/theme/dark")[1]["Set-Cookie"] == "theme=dark; Path=/; Max-Age=3600"
    assert guide.get("/theme/a%3Bb")[0] == 400
    status, fields, body = guide.get("/report")
    assert (status, fields["Content-Type"], body) == (200, "text/csv", LARGE)
    (directory / "report.csv").unlink()
    guide.expect("/report", "no report\n", 404)
    guide.expect("/site/", "<p>here\n")
    guide.expect("/site/none", "Not Found", 404)


def check_middleware(guide):
    status, fields, body = guide.get("/admin/answered")
    assert (status, fields["Cache-Control"], body) == (401, "no-store", b"who are you?\n"), (status, body)
    assert guide.get("/admin/answered", Authorization="Bearer sesame")[1]["Cache-Control"] == "no-store"
    guide.wait_for("/admin/answered", lambda count: int(count) >= 1, Authorization="Bearer sesame")
    assert guide.get("/")[1]["Cache-Control"] is None


def check_compression(guide):
    status, fields, body = guide.get("/texts/long", Accept_Encoding="gzip")
    assert (status, fields["Content-Encoding"], fields["Vary"]) == (200, "gzip", "Accept-Encoding"), fields
    assert zlib.decompress(body, 31) == b"a" * 5_000
    assert guide.get("/texts/long")[2] == b"a" * 5_000
    packed = zlib.compress(LARGE[:10_000])
    assert guide.ask("POST", "/texts/length", packed, Content_Encoding="deflate")[2] == b"10000"
    assert guide.ask("POST", "/texts/length", packed, Content_Encoding="compress")[0] == 415


def check_coroutines(guide):
    guide.expect("/late", "late\n")
    assert guide.ask("POST", "/length", LARGE)[2].decode() == str(len(LARGE))
    assert guide.ask("POST", "/upper", b"abc" * 100_000)[2] == b"ABC" * 100_000
    assert guide.ask("POST", "/upper", b"")[::2] == (200, b"")
    guide.expect("/profile/ann", "<ann> 3")
    guide.expect("/squares/4", "30")
    guide.expect("/squares/1000", "too many at once, try fewer\n", 503)


def check_callbacks(guide):
    assert guide.ask("POST", "/echo", LARGE)[2] == LARGE
    assert guide.ask("POST", "/echo", iter([b"one", b"two"]))[2] == b"onetwo"
    assert guide.ask("POST", "/echo", b"")[::2] == (200, b"")
    guide.expect("/count-down", "3\n2\n1\n")


def check_deferred(guide):
    guide.expect("/ask?q=this", "it is this\n")
    # Who has only finished sending gets the answer.
    half = guide.connect(b"GET /ask?q=half HTTP/1.1\r\nHost: t\r\n\r\n")
    half.shutdown(socket.SHUT_WR)
    assert read_to_end(half).endswith(b"\r\n\r\nit is half\n")
    # Who resets the connection takes the question back.
    gone = guide.connect(b"GET /ask?q=never HTTP/1.1\r\nHost: t\r\n\r\n")
    guide.wait_for("/pending", lambda pending: pending == "1")
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.close()
    guide.wait_for("/pending", lambda pending: pending == "0")


def check_events(guide):
    status, fields, body = guide.get("/ticks")
    assert (status, fields["Content-Type"]) == (200, "text/event-stream"), fields
    events = body.decode().split("\n\n")
    assert events[0] == ":" and events[4:] == [""], events
    for number, event in enumerate(events[1:4], start=1):
        assert sorted(event.split("\n")) == [f"data: {number}", "event: tick", f"id: {number}"], event


def check_forms(guide, directory):
    head = b'--XyZ\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    form = head % (b"title", b"", b"Dam") + head % (b"photo", b'; filename="../../p.jpg"', LARGE) + b"--XyZ--\r\n"
    kind = "multipart/form-data; boundary=XyZ"
    status, _, body = guide.ask("POST", "/form", form, Content_Type=kind)
    assert (status, body.decode()) == (200, f"title=Dam\nphoto={len(LARGE)} bytes\n"), (status, body)
    assert (directory / "uploads" / "photo").read_bytes() == LARGE
    assert guide.ask("POST", "/form", form[:-10], Content_Type=kind)[0] == 400
    assert guide.ask("POST", "/form", form, Content_Type="text/plain")[0] == 415
    large = head % (b"photo", b'; filename="x"', b"x" * (1 << 20 | 1)) + b"--XyZ--\r\n"
    assert guide.ask("POST", "/form", large, Content_Type=kind)[0] == 413
    assert [path.name for path in (directory / "uploads").iterdir()] == ["photo"]


def check_trailers(guide):
    for trailer, match in ((b"x-sum: 195\r\n", b"yes"), (b"X-Sum: 7\r\n", b"no"), (b"", b"no")):
        client = guide.connect(b"POST /checked HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
                               b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n" + trailer + b"\r\n")
        answer = read_to_end(client)
        assert b"\r\nTrailer: X-Sum, X-Match\r\n" in answer, answer
        assert answer.endswith(b"2\r\nab\r\n0\r\nX-Sum: 195\r\nX-Match: " + match + b"\r\n\r\n"), answer


def check_limits(guide):
    assert guide.ask("PUT", "/avatar", b"x" * 1_000)[2] == b"1000"
    assert guide.ask("PUT", "/avatar", b"x" * 1_001)[0] == 413
    assert guide.ask("PUT", "/avatar", iter([b"x"]))[0] == 411
    assert guide.ask("POST", "/length", b"x" * (4 << 20))[0] == 200
    # Refused by what it announces, before any of it has come.
    large = guide.connect(b"POST /length HTTP/1.1\r\nHost: t\r\nContent-Length: 4194305\r\n\r\n")
    assert read_to_end(large).startswith(b"HTTP/1.1 413 ")


def check_reactors(guide):
    visits = [int(guide.get("/visits")[2]) for _ in range(20)]
    # Two reactors count for themselves: no number comes more often than twice, and both together count all.
    assert all(visits.count(number) <= 2 for number in visits), visits
    assert 10 <= max(visits) <= 20, visits
    guide.wait_for("/beats", lambda beats: int(beats) >= 3)


def check(guide, directory):
    check_routes(guide)
    check_requests(guide)
    check_responses(guide, directory)
    check_middleware(guide)
    check_compression(guide)
    check_coroutines(guide)
    check_callbacks(guide)
    check_deferred(guide)
    check_events(guide)
    check_forms(guide, directory)
    check_trailers(guide)
    check_limits(guide)
    check_reactors(guide)


def main():
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        (directory / "site").mkdir()
        (directory / "uploads").mkdir()
        (directory / "site" / "index.html").write_text("<p>here\n")
        (directory / "report.csv").write_bytes(LARGE)
        guide = Guide(sys.argv[1], directory)
        try:
            check(guide, directory)
            guide.process.terminate()
            assert guide.process.wait(LIMIT_S) == 0
        finally:
            guide.process.kill()
            guide.process.wait()


main()
