"""Finds the brace blocks of C++ in this project's style: functions, and what types and namespaces hold.

No parser: text between the last `;`, `{` or `}` and an opening brace is the block's header, and its words
tell what the block is. Braces inside a header's parentheses and a constructor's initialisers belong to it.
"""

import re
from dataclasses import dataclass

import tidy

MARK = re.compile(r"[{}();]")
LABEL = re.compile(r"\s*(public|private|protected)\s*:(?!:)")
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|alignas\s*\([^()]*\)|__attribute__\s*\(\(.*?\)\)", re.S)
SCOPE = re.compile(r'\s*((inline\s+)?namespace\b|extern\s*"[^"]*"\s*$|TEST_SUITE\s*\()')
TYPE = re.compile(r"\s*((typedef|static|inline|const|constexpr)\s+)*(class|struct|union|enum)\b")


class Unbalanced(Exception):
    def __init__(self, line):
        super().__init__(f"unbalanced braces at line {line}")
        self.line = line


@dataclass
class Block:
    kind: str  # "function", "scope" (a namespace or type) or "data"
    header: str
    first_line: int
    lines: int
    body: str


def functions(text):
    return [block for block in blocks(text) if block.kind == "function"]


def blocks(text):
    code = without_directives(tidy.without_comments(text))
    found = []
    scan(code, 0, len(code), found)
    return found


def without_directives(code):
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda match: tidy.blank(match.group()), code, flags=re.M)


def scan(code, start, end, found):
    """Adds the blocks between two offsets, and those inside scopes, in the order of the text."""
    header_start, depth, position = start, 0, start
    while (match := MARK.search(code, position, end)) is not None:
        mark, position = match.group(), match.end()
        if mark in "()":
            depth += 1 if mark == "(" else -1
        elif mark == ";":
            if depth == 0:
                header_start = position
        elif mark == "}":
            raise Unbalanced(line_of(code, match.start()))
        else:
            close = matching_brace(code, match.start(), end)
            position = close + 1
            if depth == 0 and not continues(code, position):
                add_block(code, header_start, match.start(), close, found)
                header_start = position


def add_block(code, header_start, opening, closing, found):
    while (label := LABEL.match(code, header_start, opening)) is not None:
        header_start = label.end()
    header = code[header_start:opening]
    header_start += len(header) - len(header.lstrip())
    first = line_of(code, header_start)
    lines = line_of(code, closing) - first + 1
    block = Block(kind_of(header), header.strip(), first, lines, code[opening + 1 : closing])
    found.append(block)
    if block.kind == "scope":
        scan(code, opening + 1, closing, found)


def continues(code, position):
    """Whether a closed brace was an initialiser in front of the block proper: `: a_{1}, b_{2} {`."""
    following = re.compile(r"\s*(.)").match(code, position)
    return following is not None and following.group(1) in ",{"


def kind_of(header):
    header = ATTRIBUTE.sub(" ", without_templates(header))
    if SCOPE.match(header):
        return "scope"
    if header.rstrip().endswith("="):
        return "data"
    if "(" in header:
        return "function"
    if TYPE.match(header):
        return "scope"
    return "data" if header.strip() else "scope"


def without_templates(header):
    """Drops `template <...>` in front, whose words `class` and parentheses would mislead."""
    while (match := re.match(r"\s*template\s*<", header)) is not None:
        depth, index = 1, match.end()
        while depth > 0 and index < len(header):
            depth += {"<": 1, ">": -1}.get(header[index], 0)
            index += 1
        header = header[index:]
    return header


def matching_brace(code, opening, end):
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, opening, end):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    raise Unbalanced(line_of(code, opening))


def line_of(code, offset):
    return code.count("\n", 0, offset) + 1
