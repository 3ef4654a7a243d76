"""Which servers are compared, and how each is started. A variant is a list of further arguments."""

import getpass
import os
import pathlib
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from .arguments import refuse_namesakes
from .tools import Failure

REFERENCE = "penstock"
PENSTOCK_VARIANTS = {
    REFERENCE: [],
    "penstock-no-cache": ["--file-cache", "0"],
}
NGINX_VARIANTS = {
    "nginx": "",
    "nginx-cache": "open_file_cache max=1000 inactive=60s; open_file_cache_valid 60s;",
}
# One worker as there is one reactor. The rest is what its manual recommends for files, and no limit or log
# that would cost it something here.
NGINX_CONFIGURATION = """\
{user}
daemon off;
worker_processes 1;
error_log {scratch}/error.log;
pid {scratch}/pid;
events {{ worker_connections 4096; }}
http {{
    types {{ text/html html; }}
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    keepalive_timeout 3600;
    {variant}
    client_body_temp_path {scratch}/body;
    proxy_temp_path {scratch}/proxy;
    fastcgi_temp_path {scratch}/fastcgi;
    uwsgi_temp_path {scratch}/uwsgi;
    scgi_temp_path {scratch}/scgi;
    server {{
        listen 127.0.0.1:{port};
        {site}
    }}
}}
"""


@dataclass(frozen=True)
class Peer:
    name: str
    command: Callable[[int, pathlib.Path], list]  # of a port and a folder for what it writes
    may_be_refused: bool = False


def static_peers(program, nginx, directory, given):
    """The servers of files, the reference first."""
    peers = [penstock(name, program, directory, extra) for name, extra in PENSTOCK_VARIANTS.items()]
    if nginx:
        peers += [nginx_peer(name, nginx, directory, variant) for name, variant in NGINX_VARIANTS.items()]
    peers += [from_words(words, directory) for words in given]
    refuse_namesakes(peers)
    return peers


def penstock(name, program, directory, extra):
    def command(port, _):
        return [program, "serve", directory, "--reactors", "1", "--address", "127.0.0.1", "--port", str(port), *extra]

    return Peer(name, command, may_be_refused=bool(extra))


def nginx_peer(name, nginx, directory, variant):
    def command(port, scratch):
        return nginx_command(nginx, port, scratch, variant, f"root {directory};")

    return Peer(name, command)


def nginx_command(nginx, port, scratch, variant, site):
    # Started by root its worker would become another user, who may not be let in to the files.
    user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
    configuration = scratch / "nginx.conf"
    configuration.write_text(
        NGINX_CONFIGURATION.format(user=user, scratch=scratch, variant=variant, port=port, site=site)
    )
    return [nginx, "-p", scratch, "-e", scratch / "error.log", "-c", configuration]


def from_words(words, directory):
    name, separator, line = words.partition("=")
    if not separator or "{port}" not in line:
        raise Failure(f'"{words}" is not NAME=COMMAND with {{port}} in it')

    def command(port, _):
        return [word.replace("{port}", str(port)).replace("{directory}", str(directory)) for word in shlex.split(line)]

    return Peer(name, command)
