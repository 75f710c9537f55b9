"""How a command learns a password: never from its line, which stands in the process list."""

import getpass
import os
import sys


def read_password(variable: str) -> str:
    """Return the password from the environment, else typed unseen, else a line of the input."""
    if given := os.environ.get(variable):
        return given
    if sys.stdin.isatty():
        return getpass.getpass("Password: ")
    return sys.stdin.readline().rstrip("\n")
