"""One finding about something that somebody submitted or edited. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpuplatform.common import reasons
from gpuplatform.common.problems import Problem


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A coded finding: about what (``subject``), where in it (``path``), with which numbers.

    ``subject`` is ``Kind/name`` or ``Kind/namespace/name``. What the code means, how serious
    it is and what helps stands in :mod:`gpuplatform.common.reasons`.
    """

    code: str
    subject: str
    path: str = ""
    numbers: Mapping[str, str | int] = field(default_factory=dict)
    message: str = ""  # a rule's own sentence, where the rule worded it itself

    @property
    def severity(self) -> str:
        """Return ``error``, ``warning`` or ``info``."""
        return reasons.severity(self.code)

    @property
    def is_error(self) -> bool:
        """Return whether this finding alone refuses its object."""
        return self.severity == reasons.ERROR

    @property
    def sentence(self) -> str:
        """Return the finding in the words of people."""
        return self.message or reasons.sentence(self.code, self._words)

    @property
    def next_step(self) -> str:
        """Return what would help, or "" where nothing general can be said."""
        return reasons.next_step(self.code, self._words)

    @property
    def _words(self) -> dict[str, str | int]:
        name = self.subject.rpartition("/")[2]
        return {"subject": self.subject, "name": name, "path": self.path, **self.numbers}

    @classmethod
    def from_problem(cls, subject: str, problem: Problem) -> "Diagnostic":
        """Return a rule's refusal as a finding about ``subject``."""
        return cls(problem.code, subject, problem.path, problem.numbers, problem.message)

    def as_json(self) -> dict[str, object]:
        """Return the finding as answers and stored warnings spell it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "subject": self.subject,
            "path": self.path,
            "detail": self.sentence,
            "next_step": self.next_step,
            "numbers": reasons.shortened(self.numbers),
        }

    def as_problem(self, prefix: str = "") -> Problem:
        """Return the finding as something to correct; ``prefix`` stands before its path."""
        path = ".".join(part for part in (prefix, self.path) if part)
        return Problem(path, self.code, self.sentence, self.numbers)


def unsaid(found: Iterable[Diagnostic], known: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Return what of ``found`` is not ``known`` yet under another path.

    A reader of documents and the rules may find the same thing, each with its own path; the
    reader's, which comes first, is the one that the sender wrote.
    """
    said = {_gist(diagnostic) for diagnostic in known}
    return (d for d in found if not d.numbers or _gist(d) not in said)


def _gist(diagnostic: Diagnostic) -> tuple[object, ...]:
    return diagnostic.code, diagnostic.subject, tuple(sorted(diagnostic.numbers.items()))


def errors_of(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings that refuse their object."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.is_error]
