"""The servers of `perf/run tls`, with one certificate for all, and their scenarios. As data, like `peers`.

A small answer is a fixed one where the server's manual has a way for it (`penstock --demo`, `return` of nginx); bodies are
files for all of them. Each has one thread, no log, and no limit to the requests of a connection.
"""

import getpass
import os
import subprocess
from dataclasses import dataclass

from .http_peers import HELLO, written
from .peers import Peer
from .tools import Failure, place_of

REFERENCE = "nginx"
OTHERS = ("nginx", "h2o")
SIZES = {"plaintext": len(HELLO), "100kb": 100 << 10, "1mb": 1 << 20}
KEYS = {"ecdsa": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa": ["rsa:2048"]}
KINDS = {"ecdsa": "EC 256", "rsa": "RSA 2048"}  # as penstock_load calls them
OPENSSL_LIMIT_S = 60
AES = {"1.3": "TLS_AES_128_GCM_SHA256", "1.2": "ECDHE-ECDSA-AES128-GCM-SHA256"}
CHACHA = "TLS_CHACHA20_POLY1305_SHA256"
NGINX = """\
{user}
daemon off;
worker_processes 1;
error_log {scratch}/error.log;
pid {scratch}/pid;
events {{ worker_connections 4096; }}
http {{
    default_type text/plain;
    access_log off;
    server_tokens off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    keepalive_timeout 3600;
    client_header_timeout 3600;
    open_file_cache max=1000 inactive=3600s;
    open_file_cache_valid 3600s;
    client_body_temp_path {scratch}/body;
    proxy_temp_path {scratch}/proxy;
    fastcgi_temp_path {scratch}/fastcgi;
    uwsgi_temp_path {scratch}/uwsgi;
    scgi_temp_path {scratch}/scgi;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_tickets on;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    server {{
        listen 127.0.0.1:{port} ssl;
        root {site};
        location = /plaintext {{ return 200 "{hello}"; }}
    }}
}}
"""
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
  ssl:
    certificate-file: {certificate}
    key-file: {key}
    minimum-version: TLSv1.2
hosts:
  default:
    paths:
      /:
        file.dir: {site}
"""


@dataclass(frozen=True)
class Scenario:
    name: str
    connections: int
    kind: str = "keep-alive"  # or "full", "resumed": a handshake for each request
    body: str = "plaintext"
    key: str = "ecdsa"
    version: str = "1.3"
    suite: str = ""  # AES-128 of the version
    group: str = "X25519"
    depth: int = 1
    is_optional: bool = False

    @property
    def size(self):
        return SIZES[self.body]

    @property
    def closes(self):
        return self.kind != "keep-alive"

    @property
    def suite_asked(self):
        return self.suite or AES[self.version]

    @property
    def groups(self):
        """TLS 1.2 has the certificate's curve among them too; the first is the one that is agreed on."""
        return self.group if self.version == "1.3" else f"{self.group}:P-256"

    def path_at(self, _):
        return f"/{self.body}"

    def words(self):
        """For penstock_load, beside those of a scenario without TLS."""
        return ["--tls", "--tls-version", self.version, "--tls-suites", self.suite_asked, "--tls-groups", self.groups,
                *["--resume"] * (self.kind == "resumed")]


SCENARIOS = (
    Scenario("full", 10, "full"),
    Scenario("resumed", 10, "resumed"),
    Scenario("keep-1", 1),
    Scenario("keep-50", 50),
    Scenario("100kb", 10, body="100kb"),
    Scenario("1mb", 10, body="1mb"),
    Scenario("full-rsa", 10, "full", key="rsa", is_optional=True),
    Scenario("full-1.2", 10, "full", version="1.2", is_optional=True),
    Scenario("keep-50-1.2", 50, version="1.2", is_optional=True),
    Scenario("100kb-chacha", 10, body="100kb", suite=CHACHA, is_optional=True),
)
# Scenario, and what Penstock's CPU time for an operation may be of nginx's.
GOALS = (("full", 1.00), ("keep-1", 0.65), ("keep-50", 0.65))


def make_site(folder):
    """Bodies as files, and a certificate of each kind, new in each run."""
    site = folder / "site"
    site.mkdir(parents=True, exist_ok=True)
    for name, size in SIZES.items():
        (site / name).write_text(HELLO if name == "plaintext" else "x" * size)
    openssl = place_of("openssl")
    if openssl is None:
        raise Failure("not installed: openssl (Debian package openssl)")
    for name, words in KEYS.items():
        certificate, key = files_of(folder, name)
        done = subprocess.run(
            [openssl, "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-newkey", *words, "-keyout", key,
             "-out", certificate], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=OPENSSL_LIMIT_S, check=False)
        if done.returncode != 0:
            raise Failure(f"openssl ended with {done.returncode}: {done.stderr.strip()}")


def files_of(folder, key):
    return folder / f"{key}.pem", folder / f"{key}-key.pem"


def peers_of(program, folder, scenario):
    """Name and peer of all that are installed; None for the others."""
    certificate, key = files_of(folder, scenario.key)
    values = {"site": folder / "site", "certificate": certificate, "key": key, "user": getpass.getuser(), "hello": HELLO}

    def penstock(port, _):
        return [program, "serve", folder / "site", "--demo", "--reactors", "1", "--address", "127.0.0.1", "--port", str(port),
                "--tls", certificate, key]

    def nginx(port, scratch):
        user = f"user {values['user']};" if os.geteuid() == 0 else ""
        text = NGINX.format(**values | {"user": user, "scratch": scratch, "port": port})
        return [place_of("nginx"), "-p", scratch, "-e", scratch / "error.log", "-c", written(scratch, text)]

    def h2o(port, scratch):
        return [place_of("h2o"), "-c", written(scratch, H2O.format(**values, scratch=scratch, port=port))]

    found = {"penstock": Peer("penstock", penstock)}
    for name, command in zip(OTHERS, (nginx, h2o), strict=True):
        found[name] = Peer(name, command) if place_of(name) else None
    return found
