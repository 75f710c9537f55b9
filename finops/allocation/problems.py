"""What is wrong with facts, by path and code (FORMAT.md 1, refused facts)."""

from collections.abc import Iterable
from typing import NamedTuple


class Problem(NamedTuple):
    """One problem: ``usage[3].gpus`` is a ``bad_number``."""

    path: str
    code: str


class BadFacts(ValueError):
    """Facts that cannot be billed; ``problems`` are sorted, each once."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("; ".join(f"{path}: {code}" for path, code in self.problems))
