"""What the checks share: the files of the project, C++ text without its comments, and the command line.

A check is a file check_NAME.py with `check(root)`, which returns complaints as "file:line: what", and
`self_test()`, which shows that it finds what it is for. Standard library only.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("platform", "engine", "protocols")
CODE_SUFFIXES = {".h", ".cpp", ".c"}

TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)"""
    r"""|(?P<text>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*')""",
    re.S,
)


def files(root):
    """The files under version control or about to be, as paths relative to `root`."""
    names = versioned_files(root)
    if names is None:  # a copy without its history
        skipped = {"build", ".git", "__pycache__"}
        names = [path.relative_to(root) for path in root.rglob("*")]
        names = [name for name in names if not skipped.intersection(name.parts)]
    return sorted(name for name in names if (root / name).is_file() and not (root / name).is_symlink())


def versioned_files(root):
    if not (root / ".git").exists() or shutil.which("git") is None:
        return None
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return [Path(os.fsdecode(name)) for name in output.split(b"\0") if name]


def code_files(root):
    return [name for name in files(root) if name.suffix in CODE_SUFFIXES]


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def first_line(path):
    return read(path).split("\n", 1)[0]


def blank(text):
    """Spaces instead of everything but line ends, so that line numbers stay true."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text, keep_strings=False):
    """C++ with its comments blanked and, unless kept, what stands inside its strings."""

    def replace(match):
        token = match.group()
        if match.lastgroup == "comment" or match.group("comment") is not None:
            return blank(token)
        return token if keep_strings else token[0] + blank(token[1:-1]) + token[-1]

    return TOKEN.sub(replace, text)


def directives(text):
    """(line number, text) of each preprocessor line, continuations joined."""
    lines = without_comments(text, keep_strings=True).split("\n")
    index = 0
    while index < len(lines):
        start, line = index, lines[index]
        while line.endswith("\\") and index + 1 < len(lines):
            index += 1
            line = line[:-1] + lines[index]
        if line.lstrip().startswith("#"):
            yield start + 1, line.strip()
        index += 1


def includes(text):
    """(line number, header, whether in quotes) of each include."""
    for number, line in directives(text):
        match = re.match(r'#\s*include\s*(?:<([^>]+)>|"([^"]+)")', line)
        if match:
            yield number, match.group(1) or match.group(2), match.group(2) is not None


def library_file(header):
    """The source file behind an include of ours, or None."""
    if not header.startswith("penstock/"):
        return None
    inner = header.removeprefix("penstock/")
    return Path("protocols/penstock.h") if inner == "penstock.h" else Path(inner)


class Tree:
    """A small project made for a self-test."""

    def __init__(self, contents):
        self._contents = contents

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        root = Path(self._folder.name)
        for name, text in self._contents.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    def __exit__(self, *unused):
        self._folder.cleanup()


def expect(check, contents, wanted):
    """Exactly one complaint for each text in `wanted`, in order, and it contains the text."""
    with Tree(contents) as root:
        complaints = check(root)
    found = len(complaints) == len(wanted) and all(
        text in complaint for text, complaint in zip(wanted, complaints)
    )
    if not found:
        sys.exit(f"self-test failed: wanted {wanted}, got {complaints}")


def main(name, check, self_test):
    parser = argparse.ArgumentParser(description=f"{name} of the sources; exits 1 when something is wrong.")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--self-test", action="store_true", help="show that the check can fail")
    options = parser.parse_args()
    if options.self_test:
        self_test()
        print(f"{name}: the check can fail")
        return
    complaints = check(options.root.resolve())
    for complaint in complaints:
        print(complaint)
    if complaints:
        sys.exit(f"{name}: {len(complaints)} found")
    print(f"{name}: nothing found")
