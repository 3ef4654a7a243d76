"""Another commit of this repository, built in a folder of its own as one build of this tree was made."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

from .arguments import HOW_TO_BUILD, ROOT
from .tools import Failure

ONGOING = set()  # processes, each with a session of its own
LIMIT_S = 300  # for anything that is started here; building another commit takes the longest
# What decides how the compiler and the linker are called, and what they are given.
SETTINGS = (r"CMAKE_BUILD_TYPE|CMAKE_C(?:XX)?_COMPILER|CMAKE_C(?:XX)?_FLAGS(?:_RELEASE|_MINSIZEREL)?"
            r"|CMAKE_EXE_LINKER_FLAGS(?:_MINSIZEREL)?|CMAKE_INTERPROCEDURAL_OPTIMIZATION|PENSTOCK_JEMALLOC|PENSTOCK_WERROR")


@contextlib.contextmanager
def built(commit, like, targets, needs, git):
    """Where that commit was built, as long as the `with` lasts. `needs`: a folder without which it cannot be measured."""
    name = short_name(commit, git)
    settings = settings_of(like)
    with tempfile.TemporaryDirectory(prefix="penstock-commit-") as folder:
        tree = pathlib.Path(folder) / name
        with telling_what_git_says():
            call([git, "clone", "--quiet", "--no-checkout", "--shared", ROOT, tree], "the sources could not be copied")
            call([git, "-C", tree, "checkout", "--quiet", "--detach", name], "the sources could not be copied")
        if not (tree / needs).is_dir():
            raise Failure(f"{commit} has no {needs} to measure; give a later commit")
        (tree / "build").mkdir()
        if (ROOT / "build/packages").is_dir():
            shutil.copytree(ROOT / "build/packages", tree / "build/packages", symlinks=True)
        build = tree / "build/base"
        # So that what ccache has of this tree serves for the same source there.
        ccache = {"CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
        call(["cmake", "-G", "Ninja", "-S", tree, "-B", build, "-DPENSTOCK_TESTS=OFF", *settings],
             f"{commit} could not be configured", ccache)
        call(["cmake", "--build", build, "--target", *targets], f"{commit} could not be built", ccache)
        yield build


def short_name(commit, git):
    with telling_what_git_says():
        return call([git, "-C", ROOT, "rev-parse", "--short", commit + "^{commit}"], f"there is no commit {commit}").strip()


@contextlib.contextmanager
def telling_what_git_says():
    """In our words, and in the first line of its own."""
    try:
        yield
    except Ended as ended:
        if ended.is_of_ownership:
            raise Failure(f"git does not read {ROOT}, since it belongs to another user (\"dubious ownership\"); if you trust "
                          f"it: git config --global --add safe.directory {ROOT}") from ended
        first = ended.words.partition("\n")[0].removeprefix("fatal: ")
        # For a name that it does not know it says nothing but that it needs one.
        is_told = first and first != "Needed a single revision"
        raise Failure(f"{ended.about} (git: {first})" if is_told else ended.about) from ended


def settings_of(build):
    """Those that another build is given, to be like this one."""
    cache = build / "CMakeCache.txt"
    if not cache.is_file():
        raise Failure(f"{build} is no build folder; {HOW_TO_BUILD}")
    text = cache.read_text()
    if re.search(r"^PENSTOCK_PROFILE:\w+=use$", text, re.M):
        raise Failure(f"{build} is optimised by a profile that another commit has not; give a release build")
    return [f"-D{name}={value}" for name, value in re.findall(rf"^({SETTINGS}):\w+=(.*)$", text, re.M)]


class Ended(Failure):
    """A program with another status than 0, and what it has said."""

    def __init__(self, command, about, status, words, output=""):
        super().__init__(f"{about}: {pathlib.Path(command[0]).name} ended with {status}: {words}")
        self.about = about
        self.status = status
        self.output = output
        self.words = words

    @property
    def is_of_ownership(self):
        """Of git, which looks at no repository that belongs to another user."""
        return "dubious ownership" in self.words


def call(command, about, environment=None):
    """What it prints; whatever keeps it from ending well is told behind `about`, the sentence for that."""
    # In a session of its own, so that what it has started ends with it.
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", env=os.environ | (environment or {}), start_new_session=True) as process:
        try:
            with ongoing(process):
                output, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired as expired:
            end_session(process)
            raise Failure(f"{about}: {pathlib.Path(command[0]).name} has not ended after {LIMIT_S} s") from expired
        except BaseException:
            end_session(process)
            raise
    if process.returncode != 0:
        raise Ended(command, about, process.returncode, (errors or output).strip(), output)
    return output


@contextlib.contextmanager
def ongoing(process):
    """For as long as the `with` lasts, end_ongoing() ends it, whichever thread has started it."""
    ONGOING.add(process)
    try:
        yield
    finally:
        ONGOING.discard(process)


def end_ongoing():
    for process in list(ONGOING):
        if process.returncode is None:
            end_session(process)


def end_session(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
