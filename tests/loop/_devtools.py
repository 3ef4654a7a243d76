"""Chromium, driven by the DevTools protocol over a pipe, and what it says of each request that a page makes.

The protocol is JSON with a zero byte behind each message, on the browser's descriptors 3 and 4. One page at a time.
"""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
from dataclasses import dataclass, field

LIMIT_S = 30  # far beyond what a page needs, sanitizers included
FIRST_FREE_DESCRIPTOR = 10  # above those that the browser wants
PIECE_BYTES = 1 << 16
LAST_WORDS = 1_000
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = (
    "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-default-apps", "--disable-extensions", "--disable-sync",
    "--disable-breakpad", "--disable-dev-shm-usage", "--password-store=basic", "--use-mock-keychain",
    # Nothing outside this machine is asked for, whatever a page names.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--no-proxy-server",
)


@dataclass
class Fetch:
    """One request of a page and what came of it. `wire_status` is what the server answered, 0 when it was not asked."""

    url: str
    status: int = 0
    wire_status: int = 0
    mime_type: str = ""
    head_bytes: int = 0
    all_bytes: int = 0  # that came over the network, now or when it came into the memory that it is from
    from_cache: bool = False
    wire_status_follows: bool = False  # with an event of its own, which may be the first or the last
    has_ended: bool = False
    is_of_browser: bool = False  # such as the icon: it comes when it likes, and may never end
    failure: str = ""

    def is_known_already(self):
        return self.wire_status == 304 or not self.was_asked()

    def was_asked(self):
        return self.wire_status != 0 or not self.from_cache

    def body_bytes(self):
        """Those that the server sent."""
        return self.all_bytes - self.head_bytes if self.was_asked() else 0

    def is_over(self):
        awaits_wire_status = self.wire_status_follows and not self.wire_status
        return self.has_ended and (not awaits_wire_status or bool(self.failure))


@dataclass
class Page:
    """What was seen from the start of a navigation until nothing was under way."""

    url: str = ""
    fetches: dict = field(default_factory=dict)
    complaints: list = field(default_factory=list)
    is_loaded: bool = False

    def is_at_rest(self):
        return self.is_loaded and all(fetch.is_over() for fetch in self.fetches_of(""))

    def fetches_of(self, base):
        return [fetch for fetch in self.fetches.values() if fetch.url.startswith(base) and not fetch.is_of_browser]


class Chromium:
    """A browser with one page. Its profile stays where it is: another one can go on with the cache of this."""

    session = None  # of the page; what concerns the browser is asked without

    def __init__(self, profile):
        self.buffer = b""
        self.last_id = 0
        self.early_statuses = {}
        self.page = Page()
        self.pid = 0
        self.errors = profile.with_name(profile.name + ".log")
        self.reader, self.writer = self.launch(profile)
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Network", "Log", "Runtime"):
                self.call(domain + ".enable")
        except BaseException:
            self.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        try:
            if failure is None:
                self.session = None
                self.call("Browser.close")
                self.wait_for_end()  # until its cache is on the disk
        finally:
            self.kill()

    def launch(self, profile):
        arguments = [BROWSER, *ARGUMENTS, f"--user-data-dir={profile}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # it refuses to run as root with it
        with contextlib.ExitStack() as browsers_ends:
            (commands, writer), (reader, answers) = [[above(end) for end in os.pipe()] for _ in range(2)]
            for end in (commands, answers):
                browsers_ends.callback(os.close, end)
            self.pid = os.posix_spawn(BROWSER, arguments, os.environ, setsid=True, file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, str(self.errors), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, commands, 3),
                (os.POSIX_SPAWN_DUP2, answers, 4),
            ])
        return reader, writer

    def wait_for_end(self):
        deadline = time.monotonic() + LIMIT_S
        with contextlib.suppress(EOFError):
            while True:
                self.receive(deadline)

    def kill(self):
        """The browser and its helpers, which are in the session that began with it."""
        if not self.pid:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.pid = 0
        os.close(self.reader)
        os.close(self.writer)

    def call(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + LIMIT_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reader], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"nothing comes from the browser; {self.page}; {self.last_words()}")
            piece = os.read(self.reader, PIECE_BYTES)
            if not piece:
                raise EOFError(f"the browser has ended: {self.last_words()}")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def last_words(self):
        return self.errors.read_text(errors="replace")[-LAST_WORDS:]

    def evaluate(self, expression):
        """What a script in the page comes to; a promise, what it resolves to."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def navigate(self, url):
        return self.load(lambda: self.call("Page.navigate", url=url))

    def reload(self):
        return self.load(lambda: self.call("Page.reload"))

    def load(self, begin):
        """Does what makes the page load another or itself again, and follows it until all has come."""
        self.page = Page()
        begin()
        deadline = time.monotonic() + LIMIT_S
        while not self.page.is_at_rest():
            self.note(self.receive(deadline))
        self.page.url = self.evaluate("location.origin + location.pathname")
        return self.page

    def note(self, event):
        method, values = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            # That of the page before may come late.
            self.page.is_loaded = bool(self.page.fetches)
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("warning", "error"):
            self.page.complaints.append(f"{values['entry']['text']} {values['entry'].get('url', '')}")
        elif method == "Runtime.exceptionThrown":
            self.page.complaints.append(str(values["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "assert"):
            self.page.complaints.append(str(values["args"]))
        elif method == "Network.requestWillBeSent":
            self.page.fetches[values["requestId"]] = Fetch(
                values["request"]["url"],
                wire_status=self.early_statuses.pop(values["requestId"], 0),
                is_of_browser=values["type"] == "Other",
            )
        elif method == "Network.responseReceivedExtraInfo" and values["requestId"] not in self.page.fetches:
            self.early_statuses[values["requestId"]] = values["statusCode"]
        elif fetch := self.page.fetches.get(values.get("requestId")):
            note_of_fetch(fetch, method, values)


def note_of_fetch(fetch, method, values):
    if method == "Network.requestServedFromCache":
        fetch.from_cache = True
    elif method == "Network.responseReceivedExtraInfo":
        fetch.wire_status = values["statusCode"]
    elif method == "Network.responseReceived":
        response = values["response"]
        fetch.status, fetch.mime_type = response["status"], response["mimeType"]
        # It promises that status for what is in memory too, and then there is none.
        fetch.wire_status_follows = values["hasExtraInfo"] and not fetch.from_cache
        fetch.from_cache |= response.get("fromDiskCache", False)
        fetch.head_bytes = response["encodedDataLength"]
    elif method == "Network.loadingFinished":
        fetch.has_ended = True
        fetch.all_bytes = values["encodedDataLength"]
    elif method == "Network.loadingFailed":
        fetch.has_ended, fetch.failure = True, values["errorText"]


def above(end):
    """The same end of a pipe, out of the way of the numbers that the browser's are to have."""
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR)
    os.close(end)
    return moved
