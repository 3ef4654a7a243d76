"""Programs that have to be there. Nothing is installed from here."""

import os
import shutil


class Failure(Exception):
    """Ends the program with a sentence."""


def find(*names):
    """Where each of the programs is, by name; Debian's packages are called as the programs are."""
    found = {name: place_of(name) for name in names}
    missing = [f"{name} (Debian package {name})" for name, place in found.items() if place is None]
    if missing:
        raise Failure(f"not installed: {', '.join(missing)}")
    return found


def place_of(name):
    """None when it is not installed."""
    # Servers are in /usr/sbin, which only root searches.
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    return shutil.which(name, path=path)
