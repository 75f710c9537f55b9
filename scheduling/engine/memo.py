"""Answers that are worked out once."""

from collections.abc import Callable
from typing import TypeVar

REMEMBERED = 200_000  # answers; then the memory starts anew

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """The answer to each question, worked out when it is first asked for: ``memo[question]``.

    The same question must always have the same answer.
    """

    def __init__(self, work_out: Callable[[K], V]) -> None:
        super().__init__()
        self._work_out = work_out

    def __missing__(self, question: K) -> V:
        if len(self) >= REMEMBERED:
            self.clear()
        found = self[question] = self._work_out(question)
        return found
