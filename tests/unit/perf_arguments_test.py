#!/usr/bin/env python3
"""What `perf/run` may be asked for, and how it says what it cannot do."""

import argparse
import contextlib
import errno
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ.get("PENSTOCK_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
LIMIT_S = 30  # far beyond what anything here needs
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "perf"))

from runner import arguments, budget, command_line, footprint, static, tools
from runner.tools import Failure


class Numbers(unittest.TestCase):
    def test_both_bounds_are_allowed_and_nothing_beyond(self):
        whole, real = arguments.bounded(1, 1000), arguments.bounded(0.05, 10, float)
        self.assertEqual([whole("1"), whole("1000"), real("0.05"), real("10")], [1, 1000, 0.05, 10.0])
        for kind, texts, words in ((whole, ("0", "1001", "-1", "1.5", "", "x", "1e2", "9" * 5000), "from 1 to 1,000"),
                                   (real, ("0.04", "10.1", "nan", "inf", "-inf", "", "x"), "from 0.05 to 10")):
            for text in texts:
                with self.subTest(text=text[:10]), self.assertRaisesRegex(argparse.ArgumentTypeError, words):
                    kind(text)

    def test_every_number_of_every_command_has_bounds(self):
        """By what argparse knows of them, so that a new one is not forgotten."""
        parser = argparse.ArgumentParser()
        commands = parser.add_subparsers()
        for module in command_line.SUBCOMMANDS:
            module.add_command(commands)
        numbers = []
        for name, command in commands.choices.items():
            for action in command._actions:
                self.assertIsNot(action.type, float, f"{name} {action.option_strings}")
                # A core is compared with those that there are.
                if action.type is int:
                    self.assertIn("core", action.dest, f"{name} {action.option_strings}")
                if getattr(action.type, "__qualname__", "").startswith("bounded."):
                    numbers.append(f"{name} {action.option_strings[0]}")
                    for text in ("inf", "nan", "-1000", "1e12"):
                        with self.subTest(numbers[-1], text=text), self.assertRaises(argparse.ArgumentTypeError):
                            action.type(text)
        for one in ("peers --patience", "peers --rounds", "peers --seconds", "static --connections", "compare --pairs",
                    "compare --patience", "cold-start --starts", "footprint --connections", "standard --runs",
                    "standard --seconds", "soak --minutes", "peers --nice"):
            self.assertIn(one, numbers)

    def test_rounds_that_are_too_long_are_refused(self):
        done = subprocess.run([SOURCE / "perf/run", "peers", "--seconds", "11"], capture_output=True, text=True,
                              timeout=LIMIT_S)
        self.assertEqual(done.returncode, 2)
        self.assertIn("argument --seconds: 11 is not a whole number from 1 to 10", done.stderr)

    def test_a_core_that_is_not_there(self):
        for words in (("peers", "--core", "100000"), ("static", "--client-core", "-1")):
            command = words[0]
            module = next(one for one in command_line.SUBCOMMANDS if one.__name__.endswith(
                {"peers": "same_core", "static": "static"}[command]))
            parser = argparse.ArgumentParser()
            module.add_command(parser.add_subparsers())
            options = parser.parse_args([*words, "--program", sys.executable])
            options.floor = options.load = pathlib.Path(sys.executable)
            with self.subTest(command=command), unittest.mock.patch.object(tools, "find", lambda *_: {"wrk": "wrk"}), \
                    self.assertRaisesRegex(Failure, "there are only the cores"):
                module.prepare(options)

    def test_only_whole_numbers_are_called_whole(self):
        for kind, words in ((int, "^0.5 is not a whole number from 1 to 10$"), (float, "^0.5 is no number from 1 to 10$")):
            with self.subTest(kind=kind), self.assertRaisesRegex(argparse.ArgumentTypeError, words):
                arguments.bounded(1, 10, kind)("0.5")

    def test_a_build_is_advised_for_what_it_makes(self):
        place = arguments.BUILD / "bin/no-such-program"
        for program, words in ((place, "does not exist; ci/install build && "), ("/nowhere/penstock", "; give another$"),
                               (arguments.BUILD / "../../elsewhere/penstock", "; give another$")):
            with self.subTest(program=program), self.assertRaisesRegex(Failure, words):
                arguments.check_programs(pathlib.Path(program))
        with unittest.mock.patch.object(budget, "PROGRAMS", ("no-such-program",)), \
                self.assertRaisesRegex(Failure, "; ci/install build test && cmake "):
            budget.programs_of(arguments.BUILD)

    def test_servers_that_another_option_adds_are_named(self):
        known = [unittest.mock.Mock(), unittest.mock.Mock()]
        known[0].name, known[1].name = "floor", "penstock"
        with self.assertRaisesRegex(Failure, r"no server layers, only floor, penstock \(with --goals: layers\)$"):
            arguments.selected(known, ["floor", "layers"], "floor", " (with --goals: layers)")

    def test_building_begins_with_what_is_not_installed(self):
        self.assertRegex(arguments.HOW_TO_BUILD, "^ci/install build && cmake ")


class Footprint(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_with(self, inside):
        """The status, and what was printed and written, with a script in place of penstock_footprint."""
        script = self.folder / "inside"
        script.write_text(f"#!/bin/sh\n{inside}\n")
        script.chmod(0o700)
        options = unittest.mock.Mock(program=pathlib.Path(sys.executable), floor=pathlib.Path(sys.executable), inside=script,
                                     json=self.folder / "json", connections=1, only=None)
        rest = footprint.Memory(1, 1, 1)
        one = unittest.mock.patch.object
        with one(footprint, "peers_at_hand", lambda *_: (["a peer"], [])), one(footprint, "raise_descriptor_limit"), \
                one(footprint, "sizes_of", lambda _: {}), one(footprint, "table_of_sizes", lambda _: ""), \
                one(footprint, "measure", lambda *_: footprint.Idle("x", rest, rest, rest, 1)), \
                contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as errors:
            status = footprint.run(options)
        return status, printed.getvalue(), errors.getvalue(), options.json.read_text()

    def test_figures_from_outside_stay_when_those_from_inside_are_bad(self):
        for inside, status, words in (("echo held", 0, ""), ("echo held; exit 1", 1, "ended with 1"),
                                      ("echo held; kill -9 $$", 1, "ended with -9")):
            with self.subTest(inside=inside):
                got, printed, errors, written = self.run_with(inside)
                self.assertEqual(got, status)
                self.assertIn("```\nheld\n```", printed)
                self.assertIn(words, errors)
                self.assertIn('"bytes_per_connection"', written)


class Places(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_where_json_is_written_is_looked_at_first(self):
        place = self.folder / "figures.json"
        self.assertEqual(arguments.file_to_write(str(place)), place)
        place.write_text("")
        self.assertEqual(arguments.file_to_write(str(place)), place)
        for text, words in ((self.folder, "is a folder"), (self.folder / "nowhere/x", "there is no folder .*nowhere"),
                            (place / "x", "there is no folder")):
            with self.subTest(text=text), self.assertRaisesRegex(argparse.ArgumentTypeError, words):
                arguments.file_to_write(str(text))
        with unittest.mock.patch.object(arguments.os, "access", lambda *_: False), \
                self.assertRaisesRegex(argparse.ArgumentTypeError, "may not be written"):
            arguments.file_to_write(str(place))

    def test_each_command_looks_at_it(self):
        for words in (("budget",), ("peers",), ("static",), ("compare", "HEAD"), ("soak", "--minutes", "1"), ("footprint",),
                      ("cold-start",)):
            with self.subTest(words=words):
                done = subprocess.run([SOURCE / "perf/run", *words, "--json", self.folder / "nowhere/x"],
                                      capture_output=True, text=True, timeout=LIMIT_S)
                self.assertEqual(done.returncode, 2)
                self.assertIn("there is no folder", done.stderr)

    def test_a_folder_that_cannot_be_written_is_a_sentence(self):
        kept = arguments.ROOT / "build/perf/bodies"
        words = command_line.words_of(PermissionError(errno.EACCES, "Permission denied", str(kept)))
        self.assertRegex(words, rf"^{re.escape(str(kept))}: Permission denied; .*chown")
        self.assertEqual(command_line.words_of(OSError(errno.ENOTDIR, "Not a directory", b"/x/y")), "/x/y: Not a directory")
        self.assertIn("no space left", command_line.words_of(OSError(errno.ENOSPC, "No space left on device")))
        self.assertEqual(command_line.words_of(OSError(errno.EPIPE, "Broken pipe")), "")

    def test_it_is_told_without_a_traceback(self):
        def run(_):
            (self.folder / "file").write_text("")
            (self.folder / "file/below").mkdir()

        with unittest.mock.patch.object(command_line.footprint, "run", run), \
                unittest.mock.patch.object(command_line.signal, "signal"), \
                unittest.mock.patch.object(sys, "argv", ["perf/run", "footprint"]), \
                contextlib.redirect_stderr(io.StringIO()) as printed:
            self.assertEqual(command_line.main(), 1)
        self.assertRegex(printed.getvalue(), r"^perf/run: .*/file/below: Not a directory\n$")

    def test_sizes_are_told_as_they_are_given(self):
        self.assertEqual([file.label for file in static.sizes("1kb,1MB")], ["1 KB", "1 MB"])
        with self.assertRaisesRegex(argparse.ArgumentTypeError, "no files of 2KB, only of 1KB, 10KB, "):
            static.sizes("2KB")


if __name__ == "__main__":
    unittest.main()
