#!/usr/bin/env python3
"""Runs the program of the guide's chapter on TLS, which is the argument, with certificates that openssl makes, and asks it on both
ports.
"""

import http.client
import pathlib
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

LIMIT_S = 30


def make(directory, name, *more):
    """A pair of files, NAME.pem and NAME.key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj",
                    f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem", *more], cwd=directory, capture_output=True, check=True,
                   timeout=LIMIT_S)


def ports_of(process):
    waiter = selectors.DefaultSelector()
    waiter.register(process.stdout, selectors.EVENT_READ)
    assert waiter.select(LIMIT_S), "it does not tell its ports"
    return map(int, process.stdout.readline().split())


def context_of(directory, client=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if client:
        context.load_cert_chain(directory / f"{client}.pem", directory / f"{client}.key")
    return context


def ask(client, path):
    client.request("GET", path)
    response = client.getresponse()
    answer = response.status, response.headers, response.read().decode()
    client.close()
    return answer


def shown(directory, port, name):
    """The certificate for a name, as in its file."""
    plain = socket.create_connection(("127.0.0.1", port), LIMIT_S)
    with context_of(directory).wrap_socket(plain, server_hostname=name) as secured:
        return ssl.DER_cert_to_PEM_cert(secured.getpeercert(True))


def check(process, directory):
    secured, plain = ports_of(process)
    for name, of in (("example.org", "example.org"), ("shop.example", "shop.example"), ("elsewhere.example", "example.org")):
        assert shown(directory, secured, name) == (directory / f"{of}.pem").read_text(), name
    for client, status, body in ((None, 403, "show a certificate\n"), ("alice", 200, "/CN=alice by TLSv1.3\n")):
        connection = http.client.HTTPSConnection("127.0.0.1", secured, timeout=LIMIT_S, context=context_of(directory, client))
        answer = ask(connection, "/who")
        assert (answer[0], answer[2]) == (status, body), answer
        assert answer[1]["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains", answer[1].items()
    status, fields, _ = ask(http.client.HTTPConnection("127.0.0.1", plain, timeout=LIMIT_S), "/a?b=c")
    assert (status, fields["Location"]) == (308, "https://127.0.0.1/a?b=c"), fields.items()
    token = ask(http.client.HTTPConnection("127.0.0.1", plain, timeout=LIMIT_S), "/.well-known/acme-challenge/xyz")
    assert token[::2] == (200, "xyz.and-the-account's-thumbprint"), token
    # New files, as the guide says.
    make(directory, "example.org")
    process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + LIMIT_S
    while shown(directory, secured, "example.org") != (directory / "example.org.pem").read_text():
        assert time.monotonic() < deadline, "the new certificate is not shown"
    process.terminate()
    assert process.wait(LIMIT_S) == 0


def main():
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        for name in ("example.org", "shop.example", "customers"):
            make(directory, name)
        make(directory, "alice", "-CA", "customers.pem", "-CAkey", "customers.key")
        with subprocess.Popen([pathlib.Path(sys.argv[1]).resolve()], cwd=directory, stdout=subprocess.PIPE) as process:
            try:
                check(process, directory)
            finally:
                process.kill()


main()
