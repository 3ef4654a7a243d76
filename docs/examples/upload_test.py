#!/usr/bin/env python3
"""Runs the example `upload`, which is the argument, and sends it a form by a Unix socket."""

import http.client
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

LIMIT_S = 30
DATA = os.urandom(300_007)


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=LIMIT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(self.path)


def serves(path):
    try:
        Connection(path).connect()
    except OSError:
        return False
    return True


def ask(path, body, boundary="XyZ"):
    connection = Connection(path)
    connection.request("POST", "/upload", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


def check(directory, program, address):
    deadline = time.monotonic() + LIMIT_S
    while not serves(address):
        assert program.poll() is None and time.monotonic() < deadline, "it does not serve"
        time.sleep(0.01)
    head = b'--XyZ\r\nContent-Disposition: form-data; name="photo"; filename="../photo.jpg"\r\n\r\n'
    status, body = ask(address, head + DATA + b"\r\n" + head + b"\r\n--XyZ--\r\n")
    assert status == 201, (status, body)
    first, second = (line.split(" ") for line in body.splitlines())
    assert (int(first[1]), int(second[1])) == (len(DATA), 0), body
    assert sorted(os.listdir(directory)) == sorted([first[0], second[0]]), os.listdir(directory)
    assert (directory / first[0]).read_bytes() == DATA

    assert ask(address, head + DATA)[0] == 400
    assert ask(address, head, boundary="")[0] == 415
    assert len(os.listdir(directory)) == 2, os.listdir(directory)


def main():
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place) / "kept"
        directory.mkdir()
        address = f"{place}/socket"
        program = subprocess.Popen([sys.argv[1], str(directory), f"unix:{address}"])
        try:
            check(directory, program, address)
            program.terminate()
            assert program.wait(LIMIT_S) == 0
        finally:
            program.kill()
            program.wait()


main()
