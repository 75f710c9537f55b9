"""What a user must correct. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to correct: the field, a stable code, a sentence, and the numbers in it."""

    path: str
    code: str
    message: str
    numbers: Mapping[str, str | int] = field(default_factory=dict)


class Rejected(Exception):
    """A request that broke rules; nothing was changed.

    ``warnings`` is what was found beside the problems, as answers spell it.
    """

    warnings: Sequence[Mapping[str, object]] = ()

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(f"{p.path}: {p.code} {p.message}" for p in problems))
        self.problems = tuple(problems)


class Stale(Rejected):
    """Somebody changed the object since the caller saw it; nothing was changed."""


class NotAllowed(Exception):
    """The actor may see the object but not do this to it."""
