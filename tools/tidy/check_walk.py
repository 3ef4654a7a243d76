#!/usr/bin/env python3
"""docs/WALK.md names only functions that exist, and links in our documents lead to files that exist.

A name is `Type::function`, with or without (), or `function()`, in backticks.
"""

import re

import cpp_blocks
import tidy

WALK = "docs/WALK.md"
FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.S | re.M)
QUALIFIED = re.compile(r"`((?:\w+::)+~?\w+)(?:\(\))?`")
PLAIN = re.compile(r"`(\w+)\(\)`")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
SCOPE_NAME = re.compile(r"(?:class|struct|union|enum|namespace)\s+(?:\w+\s+)*?((?:\w+::)*\w+)\s*(?:final\b|[:<]|$)")


def check(root):
    if not (root / WALK).is_file():
        return [f"{WALK}:1: is missing"]
    complaints = check_names(root)
    for name in tidy.files(root):
        if name.suffix == ".md":
            complaints += check_links(root, name)
    return complaints


def check_names(root):
    code, scopes = read_sources(root)
    text = FENCE.sub(lambda match: tidy.blank(match.group()), tidy.read(root / WALK))
    complaints = []
    for pattern, exists in ((QUALIFIED, has_member), (PLAIN, has_function)):
        for match in pattern.finditer(text):
            if not exists(match.group(1), code, scopes):
                line = text.count("\n", 0, match.start()) + 1
                complaints.append(f"{WALK}:{line}: there is no {match.group(1)} in the sources")
    return complaints


def read_sources(root):
    """All code of the library and program as one text, and what each type and namespace holds."""
    code, scopes = [], {}
    for name in tidy.code_files(root):
        if name.parts[0] not in (*tidy.LAYERS, "tools"):
            continue
        text = tidy.read(root / name)
        code.append(tidy.without_comments(text))
        for block in cpp_blocks.blocks(text):
            if block.kind == "scope" and (title := SCOPE_NAME.search(strip_header(block.header))):
                scopes.setdefault(title.group(1).split("::")[-1], []).append(block.body)
    return "\n".join(code), scopes


def strip_header(header):
    return cpp_blocks.ATTRIBUTE.sub(" ", cpp_blocks.without_templates(header)).strip()


def has_member(name, code, scopes):
    scope, member = name.split("::")[-2:]
    if scope == "std":
        return True
    word = re.compile(rf"(?<!\w){re.escape(member)}(?!\w)")
    return any(word.search(body) for body in scopes.get(scope, []))


def has_function(name, code, scopes):
    return re.search(rf"\b{name}\s*\(", code) is not None


def check_links(root, name):
    text = FENCE.sub(lambda match: tidy.blank(match.group()), tidy.read(root / name))
    complaints = []
    for match in LINK.finditer(text):
        target = match.group(1).split("#")[0]
        if not target or re.match(r"[a-z]+:", target):
            continue
        if not (root / name.parent / target).exists():
            line = text.count("\n", 0, match.start()) + 1
            complaints.append(f"{name}:{line}: the link {target} leads nowhere")
    return complaints


def self_test():
    sources = {
        "engine/server.h": "// Public.\nnamespace penstock {\nclass Server final {\n    int run();\n};\n"
        "template <class T>\nclass [[nodiscard]] Pool : Base<T> {\n    T* lease();\n};\n}\n",
        "engine/server.cpp": "namespace penstock {\nvoid start() {\n    // never_called() at all\n}\n}\n",
    }
    good = "`Server::run` and `Server::run()`, `Pool::lease`, `start()`, `std::move`, [it](../engine/server.h#L3).\n"
    outside = "\n```\n`Server::nothing`\n```\n[x](https://example.org/) [here](#top)\n"
    tidy.expect(check, sources | {WALK: good + outside}, [])
    tidy.expect(check, sources | {WALK: "x\n`Server::lease`\n"}, [f"{WALK}:2: there is no Server::lease"])
    tidy.expect(check, sources | {WALK: "`Nobody::run`\n"}, ["there is no Nobody::run"])
    tidy.expect(check, sources | {WALK: "`never_called()`\n"}, ["there is no never_called"])
    tidy.expect(check, sources | {WALK: "[a](../engine/gone.h)\n"}, ["../engine/gone.h leads nowhere"])
    tidy.expect(check, sources | {WALK: good, "README.md": "[a](docs/GONE.md)"}, ["README.md:1: the link"])
    tidy.expect(check, sources, ["is missing"])


if __name__ == "__main__":
    tidy.main("walk", check, self_test)
