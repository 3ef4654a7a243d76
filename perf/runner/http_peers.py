"""The servers of the scenarios, and how each is started for the same answers. As data, like `peers`.

Each is given one thread, one core, no log, and no limit to the requests of a connection, and takes the way that its
manual has for a fixed answer: where there is none, files.
"""

import dataclasses
import getpass
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from .peers import Peer, nginx_command
from .tools import Failure, place_of

REFERENCE = "floor"
HELLO = "Hello, World!"
JSON = '{"message":"Hello, World!"}'
SIZES = {"plaintext": len(HELLO), "json": len(JSON), "medium": 1 << 10, "large": 100 << 10}
PATHS = {name: f"/{name}" for name in SIZES}
OTHERS = ("nginx", "h2o", "lighttpd", "haproxy")  # and what Debian's packages of them are called
NGINX_VARIANT = """\
default_type text/plain;
    server_tokens off;
    open_file_cache max=1000 inactive=3600s;
    open_file_cache_valid 3600s;"""
NGINX_SITE = """\
root {site};
        location = /plaintext {{ return 200 "{hello}"; }}
        location = /json {{ default_type application/json; return 200 '{json}'; }}"""
H2O = """\
user: {user}
num-threads: 1
max-connections: 20000
pid-file: {scratch}/pid
error-log: {scratch}/error.log
http1-request-timeout: 3600
file.mime.setdefaulttype: text/plain
listen:
  host: 127.0.0.1
  port: {port}
hosts:
  default:
    paths:
      /:
        file.dir: {site}
"""
# 65535 is the largest number of requests on a connection that it knows: it closes each after so many.
LIGHTTPD = """\
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{site}"
server.pid-file = "{scratch}/pid"
server.errorlog = "{scratch}/error.log"
server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = 3600
server.max-fds = 20000
server.max-connections = 10000
mimetype.assign = ("" => "text/plain")
"""
HAPROXY = """\
global
    nbthread 1
    maxconn 9000
    tune.bufsize {bufsize}
defaults
    mode http
    timeout client 3600s
    timeout server 3600s
    timeout connect 5s
frontend f
    bind 127.0.0.1:{port}
    http-request return status 200 content-type text/plain file {site}/{name} if {{ path /{name} }}
"""


@dataclass(frozen=True)
class HttpPeer:
    name: str
    command: Callable  # of a port, a folder for what it writes, and a scenario
    paths: dict = dataclasses.field(default_factory=lambda: PATHS)  # by what is answered there
    package: str = ""  # that is missing

    def for_scenario(self, scenario):
        return Peer(self.name, lambda port, scratch: self.command(port, scratch, scenario))


def others_at_hand():
    """Where those are that are installed, by name."""
    return {name: place for name in OTHERS if (place := place_of(name))}


def http_peers(floor, program, site, found, given):
    """All that are known, the reference first; `found`: where programs are, without those that are not installed."""
    peers = [HttpPeer(REFERENCE, floor_command(floor)), HttpPeer("penstock", penstock_command(program, site))]
    for name, maker in zip(OTHERS, (nginx, h2o, lighttpd, haproxy), strict=True):
        package = "" if name in found else name
        peers.append(HttpPeer(name, maker(found.get(name), site), package=package))
    return peers + [from_words(words) for words in given]


def goal_peers(program, layers, site):
    """What the goals of speed ask for beside `penstock`: several reactors, and a handler behind much else."""
    only = dict.fromkeys(PATHS, "")
    peers = [HttpPeer(f"reactors-{count}", penstock_command(program, site, count), only | {"plaintext": PATHS["plaintext"]})
             for count in (2, 4, 8)]
    return [*peers, HttpPeer("layers", lambda port, *_: [layers, "", str(port)], only | {"plaintext": "/layers/plaintext"})]


def make_site(site):
    """The bodies as files, for those that answer with files."""
    site.mkdir(parents=True, exist_ok=True)
    for name, size in SIZES.items():
        text = {"plaintext": HELLO, "json": JSON}.get(name) or "x" * size
        (site / name).write_text(text)


def floor_command(program):
    def command(port, _, scenario):
        return [program, "--port", str(port), "--body", str(scenario.size), *["--close"] * scenario.closes]

    return command


def penstock_command(program, site, reactors=1):
    def command(port, *_):
        return [program, "serve", site, "--demo", "--reactors", str(reactors), "--address", "127.0.0.1", "--port", str(port)]

    return command


def nginx(program, site):
    def command(port, scratch, _):
        location = NGINX_SITE.format(site=site, hello=HELLO, json=JSON)
        return nginx_command(program, port, scratch, NGINX_VARIANT, location)

    return command


def h2o(program, site):
    def command(port, scratch, _):
        text = H2O.format(port=port, scratch=scratch, site=site, user=getpass.getuser())
        return [program, "-c", written(scratch, text)]

    return command


def lighttpd(program, site):
    def command(port, scratch, _):
        return [program, "-D", "-f", written(scratch, LIGHTTPD.format(port=port, scratch=scratch, site=site))]

    return command


def haproxy(program, site):
    def command(port, scratch, scenario):
        # What it returns has to fit into a buffer, beside the head.
        bufsize = max(16 << 10, 2 * scenario.size)
        text = HAPROXY.format(port=port, site=site, name=scenario.body, bufsize=bufsize)
        return [program, "-db", "-f", written(scratch, text)]

    return command


def written(scratch, text):
    path = scratch / "configuration"
    path.write_text(text)
    return path


def from_words(words):
    """NAME=COMMAND or NAME@plaintext=/a,large=/b=COMMAND; a path left empty is one that the server has not."""
    found = re.fullmatch(r"([\w.+-]+)(?:@((?:\w+=[^,=\s]*,?)+))?=(.*\{port\}.*)", words, re.S)
    if found is None:
        raise Failure(f'"{words}" is not NAME=COMMAND or NAME@plaintext=PATH,...=COMMAND with {{port}} in the command')
    name, pairs, line = found.groups()
    own = dict(pair.split("=") for pair in (pairs or "").split(",") if pair)
    if unknown := own.keys() - PATHS.keys():
        raise Failure(f"{name}: there is no path {min(unknown)}, only {', '.join(PATHS)}")

    def command(port, *_):
        return [word.replace("{port}", str(port)) for word in shlex.split(line)]

    return HttpPeer(name, command, PATHS | own)
