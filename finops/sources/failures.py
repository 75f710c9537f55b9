"""Why a source gave no answer that can be used, or one that must be looked at. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Numbers = Mapping[str, str | int]
SAID = 200  # characters of another system's words that we repeat


class SourceError(Exception):
    """A source did not answer, or not what it was asked; nothing of the answer is used.

    ``code`` and ``numbers`` make a sentence in ``gpuplatform.common.reasons``. No number may hold
    a secret.
    """

    def __init__(self, code: str, **numbers: str | int) -> None:
        super().__init__(f"{code} {numbers}" if numbers else code)
        self.code = code
        self.numbers: Numbers = numbers


class TransientError(SourceError):
    """The same, where asking again soon may help."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something about an answer that was used: what it leaves out or does not know."""

    code: str
    numbers: Numbers = field(default_factory=dict)
