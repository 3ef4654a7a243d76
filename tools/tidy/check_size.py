#!/usr/bin/env python3
"""A source file has at most 500 lines and a function at most 60, so that each fits a head and a screen."""

import cpp_blocks
import tidy

FILE_LINES = 500
FUNCTION_LINES = 60
SUFFIXES = tidy.CODE_SUFFIXES | {".py", ".sh", ".cmake", ".js"}


def check(root):
    complaints = []
    for name in tidy.files(root):
        if name.suffix not in SUFFIXES and name.name != "CMakeLists.txt":
            continue
        text = tidy.read(root / name)
        count = len(text.splitlines())
        if count > FILE_LINES:
            complaints.append(f"{name}:1: {count} lines, more than {FILE_LINES}")
        if name.suffix in tidy.CODE_SUFFIXES:
            complaints += check_functions(name, text)
    return complaints


def check_functions(name, text):
    lines = text.splitlines()
    try:
        blocks = cpp_blocks.functions(text)
    except cpp_blocks.Unbalanced as problem:
        return [f"{name}:{problem.line}: braces do not match, so functions cannot be measured"]
    return [
        f"{name}:{block.first_line}: {block.lines} lines, more than {FUNCTION_LINES}, in {lines[block.first_line - 1].strip()}"
        for block in blocks
        if block.lines > FUNCTION_LINES
    ]


def function_of(lines, head="int f(int x)"):
    return head + " {\n" + "    x();\n" * (lines - 2) + "}\n"


def self_test():
    tidy.expect(check, {"a.cpp": function_of(60), "b.h": "\n" * 500, "b.txt": "\n" * 501}, [])
    tidy.expect(check, {"a.cpp": "\n" * 501}, ["a.cpp:1: 501 lines"])
    tidy.expect(check, {"a.py": "\n" * 501}, ["a.py:1: 501 lines"])
    tidy.expect(check, {"a.cpp": "void f() {\n"}, ["braces do not match"])
    long_heads = [
        "int f(int x)",
        "template <class T>\nclass X<T>::Y f(struct msghdr* m) noexcept",
        "Foo::Foo(int x) : a_{1}, b_(x), c_{}",
        "Task Foo::run(Request& request) -> Task",
        'TEST_CASE("a { in a name")',
        "auto kFunction = [](int x)",
        "bool operator()(int x) const",
        "A::~A()",
    ]
    for head in long_heads:
        function, lines = function_of(61, head), 61 + head.count("\n")
        tidy.expect(check, {"a.cpp": function}, [f"a.cpp:1: {lines} lines"])
        inside = "namespace a::b {\nstruct alignas(8) [[nodiscard]] S : T<int> {\npublic:\n" + function + "};\n}\n"
        tidy.expect(check, {"a.cpp": inside}, [f"a.cpp:4: {lines} lines"])
    lambda_counts = "void f() {\n    run([&] {\n" + "        x();\n" * 60 + "    });\n}\n"
    tidy.expect(check, {"a.cpp": lambda_counts}, ["a.cpp:1: 64 lines"])
    not_functions = [
        "enum class A : int {\n" + "    a,\n" * 70 + "};\n",
        "constexpr std::array<int, 3> kTable = {{\n" + "    1,\n" * 70 + "}};\n",
        "constexpr auto kTable = make_table({\n" + "    1,\n" * 70 + "});\n",
        'extern "C" {\n' + "int f();\n" * 70 + "}\n",
        "/* void f() {\n" + "\n" * 70 + "} */\n",
        'const char* kText = R"(f() {\n' + "\n" * 70 + '})";\n',
    ]
    for text in not_functions:
        tidy.expect(check, {"a.cpp": text + function_of(60)}, [])
        tidy.expect(check, {"a.cpp": text + function_of(61)}, ["61 lines"])


if __name__ == "__main__":
    tidy.main("size", check, self_test)
