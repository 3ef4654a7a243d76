"""The files that are served: made once, and fetched from each server before anything is measured."""

import base64
import http.client
import random
from dataclasses import dataclass

from .tools import Failure

PIECE_BYTES = 1 << 20
ANSWER_LIMIT_S = 30


@dataclass(frozen=True)
class File:
    label: str
    size: int

    @property
    def name(self):
        return self.label.replace(" ", "-").lower() + ".html"


FILES = (
    File("1 KB", 1 << 10),
    File("10 KB", 10 << 10),
    File("100 KB", 100 << 10),
    File("1 MB", 1 << 20),
    File("100 MB", 100 << 20),
)


def make_files(directory, files):
    """Text that does not repeat. A file that is there with its size is kept: it was written to its end."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in files:
        path = directory / file.name
        if path.exists() and path.stat().st_size == file.size:
            continue
        source = random.Random(file.size)
        with path.open("wb") as output:
            for at in range(0, file.size, PIECE_BYTES):
                piece = base64.encodebytes(source.randbytes(PIECE_BYTES))
                output.write(piece[: min(PIECE_BYTES, file.size - at)])


def check_answers(server, directory, files):
    """Twice each on one connection, so that an answer from a cache is looked at too."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ANSWER_LIMIT_S)
    try:
        for file in files * 2:
            connection.request("GET", "/" + file.name)
            complaint = difference(connection.getresponse(), directory / file.name)
            if complaint:
                raise Failure(f"{server.name} does not answer /{file.name} with the file: {complaint}")
    except (OSError, http.client.HTTPException) as problem:
        raise Failure(f"{server.name} was asked for its files: {problem!r}") from problem
    finally:
        connection.close()


def difference(response, path):
    """Reads the whole answer. Empty, or what is wrong with it."""
    if response.status != 200:
        response.read()
        return f"status {response.status}"
    at = 0
    with path.open("rb") as file:
        while True:
            wanted = file.read(PIECE_BYTES)
            if response.read(len(wanted) or 1) != wanted:
                return f"other bytes, or another number of them, from byte {at} on"
            if not wanted:
                return ""
            at += len(wanted)
