#!/usr/bin/env python3
"""Includes go one way, the system is met in platform/ only, and headers say whom they are for.

platform <- engine <- protocols <- {tests, perf, tools, docs}; see section "Layers" of docs/ARCHITECTURE.md.
"""

import re

import tidy

SYSTEM_MACROS = re.compile(
    r"\b(__linux__|__linux|linux|__APPLE__|__FreeBSD__|__OpenBSD__|__NetBSD__|__DragonFly__|__unix__|_WIN32)\b"
)
# Headers of the operating system rather than of the language: the kernel is reached through platform/.
SYSTEM_HEADERS = re.compile(
    r"(sys|netinet|arpa|linux|net)/.*|(unistd|fcntl|poll|pthread|signal|sched|netdb|dirent|semaphore)\.h"
)
THIRD_PARTY = re.compile(r"(llhttp|xxhash|xxh3|zlib|zstd|zstd_errors)\.h|(brotli|wolfssl|jemalloc|benchmark|CLI|doctest)/.*")
# Tests are written with it, so their helpers' headers may be too.
THIRD_PARTY_OF_TESTS = re.compile(r"doctest/.*")
MARKS = ("// Public.", "// Internal.")


def check(root):
    complaints = []
    for name in tidy.code_files(root):
        text = tidy.read(root / name)
        complaints += check_conditions(name, text)
        for number, header, quoted in tidy.includes(text):
            place = f"{name}:{number}"
            complaints += check_direction(place, name, header, quoted)
            complaints += check_system(place, name, header)
            complaints += check_third_party(place, name, header)
        if name.suffix == ".h":
            complaints += check_mark(root, name, text)
    return complaints


def check_conditions(name, text):
    if name.parts[0] == "platform":
        return []
    return [
        f"{name}:{number}: a condition on the system belongs in platform/: {line}"
        for number, line in tidy.directives(text)
        if re.match(r"#\s*(if|el)", line) and SYSTEM_MACROS.search(line)
    ]


def check_direction(place, name, header, quoted):
    layer = name.parts[0]
    if layer not in tidy.LAYERS:
        return []
    target = tidy.library_file(header)
    if target is None:
        if quoted:
            return [f'{place}: write "penstock/LAYER/..." so that the layer can be seen, not "{header}"']
        return []
    if header == "penstock/penstock.h":
        return [f"{place}: the umbrella header is for users, not for the library itself"]
    target_layer = target.parts[0]
    if target_layer not in tidy.LAYERS or tidy.LAYERS.index(target_layer) > tidy.LAYERS.index(layer):
        return [f"{place}: {layer}/ may not include {target_layer}/ ({header})"]
    if layer != "platform" and target_layer == "platform" and len(target.parts) > 2:
        return [f"{place}: only the linker may choose a platform backend ({header})"]
    return []


def check_system(place, name, header):
    if name.parts[0] in ("engine", "protocols") and SYSTEM_HEADERS.fullmatch(header):
        return [f"{place}: the system is reached through platform/, not by <{header}>"]
    return []


def check_third_party(place, name, header):
    if name.suffix != ".h" or not THIRD_PARTY.fullmatch(header):
        return []
    if name.parts[0] == "tests" and THIRD_PARTY_OF_TESTS.fullmatch(header):
        return []
    return [f"{place}: a third-party header belongs in a .cpp file: {header}"]


def check_mark(root, name, text):
    mark = text.split("\n", 1)[0]
    if mark not in MARKS:
        return [f'{name}:1: the first line of a header is "{MARKS[0]}" or "{MARKS[1]}"']
    if mark != MARKS[0]:
        return []
    complaints = []
    for number, header, _ in tidy.includes(text):
        target = tidy.library_file(header)
        if target is not None and (root / target).is_file() and tidy.first_line(root / target) == MARKS[1]:
            complaints.append(f"{name}:{number}: a public header includes the internal {header}")
    return complaints


def self_test():
    good = {
        "platform/net.h": "// Public.\n#include <string>\n",
        "platform/secret.h": "// Internal.\n",
        "platform/linux/net.cpp": '#include "penstock/platform/net.h"\n#ifdef __linux__\n#endif\n',
        "engine/server.h": '// Public.\n#include "penstock/platform/net.h"\n',
        "protocols/http/http1.cpp": '#include "penstock/engine/server.h"\n#include <llhttp.h>\n',
        "protocols/penstock.h": '// Public.\n#include "penstock/engine/server.h"\n',
        "tests/unit/a.cpp": '#include <penstock/penstock.h>\n#include "support/x.h"\n#include <unistd.h>\n',
    }
    tidy.expect(check, good, [])
    cases = {
        "platform/a.cpp": ('#include "penstock/engine/server.h"', "platform/ may not include engine/"),
        "engine/a.cpp": ("#  include <penstock/protocols/http/x.h>", "engine/ may not include protocols/"),
        "engine/b.h": ('// Internal.\n#include "server.h"', "so that the layer can be seen"),
        "engine/c.cpp": ('#include "penstock/platform/linux/x.h"', "choose a platform backend"),
        "engine/d.cpp": ("#include <penstock/penstock.h>", "umbrella"),
        "engine/e.cpp": ("#include <sys/epoll.h>", "reached through platform/"),
        "engine/f.cpp": ("#if defined(A) || \\\n    defined(__APPLE__)\n#endif", "condition on the system"),
        "tests/g.cpp": ("#ifdef _WIN32\n#endif", "condition on the system"),
        "protocols/h.h": ("// Internal.\n#include <llhttp.h>", "third-party"),
        "tests/i.h": ("// Internal.\n#include <benchmark/benchmark.h>", "third-party"),
        "engine/j.h": ("#pragma once", "first line"),
        "engine/k.h": ('// Public.\n#include "penstock/platform/secret.h"', "includes the internal"),
    }
    for name, (text, wanted) in cases.items():
        tidy.expect(check, good | {name: text + "\n"}, [wanted])
    tidy.expect(check, good | {"engine/l.cpp": '// #include "penstock/protocols/x.h"\n'}, [])


if __name__ == "__main__":
    tidy.main("layering", check, self_test)
