"""What is wrong with a file, by line and field."""

from collections.abc import Iterable
from typing import NamedTuple

MOST_TOLD = 20


class Problem(NamedTuple):
    """One thing that is wrong. ``line`` 0: the file as a whole; ``field`` "": the whole line."""

    line: int
    field: str
    message: str

    def __str__(self) -> str:
        where = [f"line {self.line}"] if self.line else []
        where += [self.field] if self.field else []
        return f"{', '.join(where)}: {self.message}" if where else self.message


class BadFile(ValueError):
    """A file that cannot be read; nothing of it is used."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        told = [f"{name}: {problem}" for problem in self.problems[:MOST_TOLD]]
        more = len(self.problems) - len(told)
        super().__init__("\n".join([*told, *([f"{name}: and {more} more"] if more > 0 else [])]))
