#!/usr/bin/env python3
"""Every public header compiles alone. The compiler is taken from CXX, else c++."""

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tidy


def check(root):
    headers = [
        name
        for name in tidy.code_files(root)
        if name.suffix == ".h" and name.parts[0] in tidy.LAYERS and tidy.first_line(root / name) == "// Public."
    ]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "penstock"
        tree.mkdir()
        for layer in tidy.LAYERS:
            (tree / layer).symlink_to(root / layer)
        (tree / "penstock.h").symlink_to(root / "protocols/penstock.h")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda name: compile_alone(folder, name), headers)
            return [complaint for complaint in results if complaint is not None]


def compile_alone(folder, name):
    # The second time shows that it guards itself.
    source = f'#include "penstock/{name}"\n' * 2
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", folder, "-x", "c++", "-"]
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return None
    return f"{name}:1: does not compile alone\n{result.stderr.replace(folder + '/penstock/', '')}"


def self_test():
    alone = "// Public.\n#pragma once\n#include <string>\nstruct A {\n    std::string text;\n};\n"
    tidy.expect(check, {"engine/a.h": alone, "protocols/penstock.h": "// Public.\n"}, [])
    leaning = {"engine/b.h": "// Public.\n#pragma once\nstruct B {\n    std::string text;\n};\n"}
    tidy.expect(check, leaning, ["engine/b.h:1: does not compile alone"])
    tidy.expect(check, {"engine/c.h": "// Public.\nstruct C {};\n"}, ["engine/c.h:1: does not compile alone"])
    tidy.expect(check, {"engine/d.h": "// Internal.\nnonsense\n"}, [])


if __name__ == "__main__":
    tidy.main("headers", check, self_test)
