#!/usr/bin/env python3
"""The C++ in docs/GUIDE.md is what is compiled: each block "```cpp NAME" equals the region "// [NAME]" of a program here.

With --write it copies the regions into the blocks.
"""

import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).parent
GUIDE = HERE.parent / "GUIDE.md"
PROGRAMS = ("guide.cpp", "guide_check.cpp", "guide_tls.cpp")
REGION = re.compile(r"^ *// \[(\w+)\]\n(.*?)^ *// \[/\1\]$", re.S | re.M)
BLOCK = re.compile(r"^```cpp *(\w*)\n(.*?)^```$", re.S | re.M)


def compare(guide, programs):
    """What is wrong, a sentence for each mistake."""
    found = REGION.findall("\n".join(programs))
    regions = {name: textwrap.dedent(text) for name, text in found}
    faults = [] if len(regions) == len(found) else ["two regions have one name"]
    shown = [name for name, _ in BLOCK.findall(guide)]
    faults += [f"the region {name} is not in the guide once" for name in regions if shown.count(name) != 1]
    for name, text in BLOCK.findall(guide):
        if name not in regions:
            faults.append(f"a block names no region: {name or text}")
        elif text != regions[name]:
            faults.append(f"the block {name} is not the region of that name")
    marks = sum(len(re.findall(r"^ *// \[/?\w+\]$", program, re.M)) for program in programs)
    if marks != 2 * len(found):
        faults.append("a region has no end, no begin, or another within it")
    return faults


def self_test():
    program = "x\n    // [a]\n    if (y) {\n        z();\n    }\n    // [/a]\n"
    block = "```cpp a\nif (y) {\n    z();\n}\n```\n"
    assert compare(block, [program]) == []
    assert compare(block.replace("z", "w"), [program]) == ["the block a is not the region of that name"]
    assert len(compare(block + "```cpp\nz();\n```\n", [program])) == 1
    assert len(compare(block + block, [program])) == 1
    assert len(compare("", [program])) == 1
    assert len(compare(block, [program, "// [b]\n"])) == 1
    assert len(compare(block, [program, program])) == 1


def main():
    self_test()
    programs = [(HERE / name).read_text() for name in PROGRAMS]
    guide = GUIDE.read_text()
    if sys.argv[1:] == ["--write"]:
        regions = {name: textwrap.dedent(text) for name, text in REGION.findall("\n".join(programs))}
        guide = BLOCK.sub(lambda block: f"```cpp {block[1]}\n{regions.get(block[1], block[2])}```", guide)
        GUIDE.write_text(guide)
    faults = compare(guide, programs)
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


main()
