#!/usr/bin/env python3
"""docs/ERRORS.md is true: its examples are run against the program, and all names in it exist.

A block of the language `http` begins with `$ penstock serve DIR OPTIONS`, and perhaps a line
`# while another client is connected`. Lines with `> ` are sent and lines with `< ` come back, each with CRLF behind it;
`…` stands for anything within a line. CRLF behind the last line of an answer may be missing: Content-Length tells.

PENSTOCK_PROGRAM is the program, PENSTOCK_SOURCE_DIR (or the place of this file) the source tree.
"""

import re
import socket
import sys
import unittest

sys.dont_write_bytecode = True
import _transport as transport
from program_test import LIMIT_S, PROGRAM, SOURCE, WithDirectory, run, serve

# 403: whoever runs the tests may be allowed to read everything. 411, 415 and 500: the program has no such handler.
NOT_REPLAYED = {403, 411, 415, 500}
PAGE = SOURCE / "docs/ERRORS.md"
NONE = "–"
ANOTHER_CLIENT = "# while another client is connected"
SERVER_SOURCES = "protocols/http/http1*.cpp protocols/http/exchange*.cpp protocols/http/response*.cpp".split()
SERVER_SOURCES += ["protocols/http/target.cpp", "protocols/http/static_*.cpp", "protocols/http/file_response.cpp"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)


class Block:
    """One example: how the program is started, what is sent, and what comes back."""

    def __init__(self, text):
        self.text = text
        lines = text.splitlines()
        self.options = lines.pop(0).removeprefix("$ penstock serve DIR").split()
        self.is_second = lines[0] == ANOTHER_CLIENT
        del lines[: self.is_second]
        sent = [line for line in lines if line.startswith(">")]
        self.answer = [line[2:] for line in lines if line.startswith("<")]
        self.is_sound = text.startswith("$ penstock serve DIR") and lines == [
            *sent, *(f"< {line}".rstrip() for line in self.answer)
        ]
        self.request = "".join(line[2:] + "\r\n" for line in sent).encode()
        self.status = int(self.answer[0].split()[1])
        self.closes = "Connection: close" in self.answer

    def matches(self, received):
        pattern = re.escape("\r\n".join(self.answer)).replace("…", "[^\r\n]+")
        return re.fullmatch(rf"{pattern}(\r\n)?", received.decode()) is not None


class Page:
    def __init__(self):
        self.text = PAGE.read_text()
        self.sections = dict(re.findall(r"^### (\d{3} [^\n]*)\n(.*?)(?=^##)", self.text, re.S | re.M))
        self.prose = FENCE.sub("", self.text)

    def blocks(self, section):
        return [Block(text) for language, text in FENCE.findall(section) if language == "http"]

    def spans(self):
        return set(re.findall(r"`([^`\n]+)`", self.prose))

    def rows(self, *columns):
        """Of every table that has these columns: each row as a dictionary."""
        for table in re.findall(r"(?:^\|.*\|\n)+", self.prose, re.M):
            header, _, *rows = ([cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines())
            if set(columns) <= set(header):
                yield from (dict(zip(header, row, strict=True)) for row in rows)


def source(name):
    """Without its comments."""
    return re.sub(r"//.*", "", (SOURCE / name).read_text())


def members(header, struct):
    """Of a struct: name and default, as written."""
    body = re.search(rf"^struct {struct} {{\n(.*?)^}};", source(header), re.S | re.M).group(1)
    return dict(re.findall(r"(\w+)(?: = ([^;{]+))?(?:\{\})?;", body))


def number(text):
    """What `64 << 10` or `10'000` is."""
    value, shift = re.fullmatch(r"(\d+)(?: << (\d+))?", re.sub(r"'|ull\b", "", text)).groups()
    return int(value) << int(shift or 0)


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


class Examples(WithDirectory):
    def test_every_status_has_its_section_and_examples(self):
        page = Page()
        phrases = dict(re.findall(r'\{(\d{3}), "(.*)"\}', source("protocols/http/tables.cpp")))
        listed = {status for row in page.rows("Status", "Comes when") for status in re.findall(r"\[(\d+)\]", row["Status"])}
        self.assertEqual([title.split(" ", 1) for title in page.sections], [[s, phrases[s]] for s in sorted(listed)])
        for title, section in page.sections.items():
            status = int(title.split()[0])
            statuses = {block.status for block in page.blocks(section)}
            self.assertEqual(statuses, set() if status in NOT_REPLAYED else {status}, title)
        self.assertEqual(len(page.blocks(page.text)), sum(len(page.blocks(s)) for s in page.sections.values()))

    def test_every_status_of_the_sources_is_listed(self):
        page = Page()
        phrases = set(re.findall(r'\{([45]\d\d), "', source("protocols/http/tables.cpp")))
        files = [path.relative_to(SOURCE) for pattern in SERVER_SOURCES for path in SOURCE.glob(pattern)]
        self.assertGreater(len(files), 10)
        used = {status for name in files for status in re.findall(r"\b[45]\d\d\b", source(name))} & phrases
        self.assertEqual({title.split()[0] for title in page.sections}, used)

    def test_every_example_is_true(self):
        page = Page()
        self.write("a.txt", b"hello")
        endings = {row["Status"][1:4]: row["Connection"] for row in page.rows("Status", "Connection")}
        for title, section in page.sections.items():
            for block in page.blocks(section):
                if block.is_second and transport.SECURED:
                    continue  # who is one too many gets no handshake, and so no answer
                with self.subTest(block=block.text):
                    self.assertTrue(block.is_sound, "a line is out of its place")
                    self.assertIn("closes" if block.closes else "goes on", endings[title[:3]])
                    with serve(self.directory, *block.options) as program:
                        self.replay(block, program)

    def replay(self, block, program):
        if block.is_second:
            other = self.connect(program)
            other.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertRegex(self.read_answer(other), rb"\AHTTP/1\.1 ")  # so the server has it
        with self.connect(program) as client:
            client.sendall(block.request)
            received = self.read_answer(client)
            self.assertTrue(block.matches(received), received.decode())
            if block.closes:
                self.check_clean_end(client)
            else:
                self.check_it_goes_on(client)
        if block.is_second:
            other.close()

    def connect(self, program):
        return self.enterContext(transport.connect(program.port, LIMIT_S))

    def read_answer(self, client):
        """A head, and as much behind it as Content-Length says."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.receive(client, received)
        head_end = received.index(b"\r\n\r\n") + 4
        body = int(re.search(rb"\r\nContent-Length: (\d+)\r\n", received[:head_end]).group(1))
        while len(received) < head_end + body:
            received += self.receive(client, received)
        return received

    def receive(self, client, before):
        piece = client.recv(65536)
        self.assertTrue(piece, f"the connection has ended behind {before!r}")
        return piece

    def check_clean_end(self, client):
        """The server ends its side, and what the client still sends makes no reset."""
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(client.recv(65536), b"")
        for _ in range(2):
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)

    def check_it_goes_on(self, client):
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertRegex(self.read_answer(client), rb"\AHTTP/1\.1 ")
        self.assertEqual(client.recv(65536), b"")


class Names(unittest.TestCase):
    def test_links_within_the_page(self):
        page = Page()
        headings = re.findall(r"^#+ (.*)$", page.prose, re.M)
        anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
        self.assertLessEqual(set(re.findall(r"\]\(#([^)]+)\)", page.prose)), anchors)

    def test_limits(self):
        config, route = members("engine/config.h", "Config"), members("protocols/http/router.h", "RouteOptions")
        # What each option of the program sets.
        options = dict(re.findall(r'command, "(--[\w-]+)", &config\.(\w+)', source("tools/penstock/options.cpp")))
        option_of = {name: option for option, name in options.items()}
        self.assertGreater(len(option_of), 10)
        rows = list(Page().rows("`Config`", "`penstock`"))
        self.assertGreater(len(rows), 20)
        for row in rows:
            with self.subTest(row=row):
                names = names_in(row["`Config`"])
                self.assertLessEqual(set(names), set(config))
                self.assertEqual(names_in(row["`penstock`"]), [option_of[name] for name in names if name in option_of])
                if "`RouteOptions`" in row:
                    own = names_in(row["`RouteOptions`"])
                    self.assertLessEqual(set(own), set(route))
                    self.assertTrue(own == [name for name in names if name in route] or not names)
                    self.assertEqual(row["`RouteOptions`"] == NONE, not own)
                if row.get("Default"):
                    default = re.match(r"[\d,]+", row["Default"]).group().replace(",", "")
                    self.assertEqual(int(default), number(config[names[0]]))

    def test_every_name_exists(self):
        page = Page()
        known = {*members("engine/config.h", "Config"), *members("protocols/http/router.h", "RouteOptions")}
        known |= set(re.findall(r"Counter (\w+);", source("engine/metrics.h")))
        text = run("serve", "--help").stdout
        headers = [source(path.relative_to(SOURCE)) for path in SOURCE.glob("*/**/*.h")
                   if path.relative_to(SOURCE).parts[0] in ("engine", "protocols")]
        for span in page.spans():
            with self.subTest(span=span):
                if span.startswith("--"):
                    self.assertRegex(text, rf"(?m)^ +{re.escape(span)} ")
                elif found := re.fullmatch(r"(\w+)::(\w+)", span):
                    pattern = rf"(?:class|struct) {found[1]} (?s:.*)\b{found[2]}\b"
                    self.assertTrue(any(re.search(pattern, header) for header in headers))
                elif found := re.fullmatch(r"(\w+)\(\)", span):
                    self.assertTrue(any(re.search(rf"\b{found[1]}\(", header) for header in headers))
                elif re.fullmatch(r"[a-z]+(_[a-z]+)+", span):
                    self.assertIn(span, known)

    def test_counters_of_the_table(self):
        counters = set(re.findall(r"Counter (\w+);", source("engine/metrics.h")))
        rows = list(Page().rows("Counters"))
        self.assertGreater(len(rows), 10)
        for row in rows:
            self.assertLessEqual(set(names_in(row["Counters"])), counters)


if __name__ == "__main__":
    if not PROGRAM:
        print("set PENSTOCK_PROGRAM to the server program", file=sys.stderr)
        sys.exit(77)
    unittest.main()
