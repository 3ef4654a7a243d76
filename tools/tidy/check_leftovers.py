#!/usr/bin/env python3
"""No path of one machine and no note to oneself is in a file that others get."""

import re

import tidy

# Put together here so that this file does not complain about itself.
PLACES = re.compile(r"(?<![\w.])/(?:" + "|".join(("work", "root", "home")) + r")/")
NOTES = re.compile(r"\b(?:" + "|".join(("FIX" + "ME", "X" * 3, "TO" + "DO")) + r")\b")


def check(root):
    complaints = []
    for name in tidy.files(root):
        content = (root / name).read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1):
            for pattern, what in ((PLACES, "a path of one machine"), (NOTES, "a leftover note")):
                if (match := pattern.search(line)) is not None:
                    complaints.append(f"{name}:{number}: {what}: {match.group()}")
    return complaints


def self_test():
    fine = "mkstemp XX" + "XXXX, docs/work/x, http://host.example/home/, ../root/a, workroot\n"
    tidy.expect(check, {"a.txt": fine}, [])
    for place in ("/wo" + "rk/main", '"/ro' + 'ot/x"', "=/ho" + "me/me"):
        tidy.expect(check, {"a.txt": "x\n" + place + "/\n"}, ["a.txt:2: a path of one machine"])
    for note in ("// TO" + "DO: later", "FIX" + "ME", "X" * 3 + " here"):
        tidy.expect(check, {".ci/run": note + "\n"}, [".ci/run:1: a leftover note"])
    tidy.expect(check, {"a.png": "\0FIX" + "ME"}, [])


if __name__ == "__main__":
    tidy.main("leftovers", check, self_test)
