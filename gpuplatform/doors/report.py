"""What became of a submission, object by object. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.manifests import Document
from gpuplatform.common.rest_shapes import FINDINGS
from gpuplatform.doors.paths import document_path

ACCEPTED, REJECTED = "accepted", "rejected"
CREATED, CHANGED, UNCHANGED, NONE = "created", "changed", "unchanged", "none"
OF_RIGHTS = frozenset(("NOT_ALLOWED", "NOT_YOUR_TEAM"))


@dataclass(slots=True)
class ObjectResult:
    """One object: accepted or rejected, what changed, and everything worth saying.

    ``workloads`` are the ids of the workloads it made.
    """

    document: Document
    kind: str
    name: str
    verdict: str = ACCEPTED
    action: str = NONE
    diagnostics: list[Diagnostic] = field(default_factory=list)
    workloads: list[str] = field(default_factory=list)

    @property
    def codes(self) -> set[str]:
        """Return the codes of all findings."""
        return {diagnostic.code for diagnostic in self.diagnostics}

    @property
    def is_rejected(self) -> bool:
        """Return whether the object was refused."""
        return self.verdict == REJECTED

    def reject(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Refuse the object for these reasons; nothing of it was kept."""
        self.verdict, self.action, self.workloads = REJECTED, NONE, []
        self.tell(diagnostics)

    def tell(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add findings, each once, at the document's own fields where these are known."""
        for found in diagnostics:
            path = document_path(self.document.body, found.path)
            told = replace(found, path=path) if path else found
            if told not in self.diagnostics:
                self.diagnostics.append(told)

    def forget(self, code: str) -> None:
        """Take back what the reader of the document said and the world makes untrue."""
        self.diagnostics = [found for found in self.diagnostics if found.code != code]

    def as_json(self) -> dict[str, Any]:
        """Return the result as REST and ``--json`` spell it."""
        return {
            "index": self.document.index,
            "line": self.document.line,
            "kind": self.kind,
            "name": self.name,
            "verdict": self.verdict,
            "action": self.action,
            "workloads": self.workloads,
            "diagnostics": [diagnostic.as_json() for diagnostic in self.diagnostics],
        }


_TEXT, _LIST = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
_RESULT = {
    **{name: {"type": "integer"} for name in ("index", "line")},
    **dict.fromkeys(("kind", "name"), _TEXT),
    "verdict": {"type": "string", "enum": [ACCEPTED, REJECTED]},
    "action": {"type": "string", "enum": [CREATED, CHANGED, UNCHANGED, NONE]},
    "workloads": _LIST | {"description": "The uids of the workloads that it made or found."},
    "diagnostics": FINDINGS,
}
_REPORT = {
    **{name: {"type": "boolean"} for name in ("dry_run", "undone")},
    "results": {
        "type": "array",
        "items": {"type": "object", "required": [*_RESULT], "properties": _RESULT},
    },
    "findings": FINDINGS,
}
SHAPE: dict[str, Any] = {"type": "object", "required": [*_REPORT], "properties": _REPORT}


@dataclass(slots=True)
class ImportReport:
    """Everything about one submission. ``findings`` are about the promises as a whole."""

    results: list[ObjectResult] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    dry_run: bool = False
    undone: bool = False  # all or nothing was asked for, and something was rejected

    @property
    def rejected(self) -> list[ObjectResult]:
        """Return the objects that were refused."""
        return [result for result in self.results if result.is_rejected]

    @property
    def all_rejected(self) -> bool:
        """Return whether nothing was kept because of refusals."""
        return self.undone or (bool(self.results) and len(self.rejected) == len(self.results))

    @property
    def is_forbidden(self) -> bool:
        """Return whether every refusal is about the actor's rights."""
        codes = [{d.code for d in r.diagnostics if d.is_error} for r in self.rejected]
        return bool(codes) and all(found and found <= OF_RIGHTS for found in codes)

    @property
    def is_stale(self) -> bool:
        """Return whether every refusal is about a version that is old."""
        codes = [{d.code for d in r.diagnostics if d.is_error} for r in self.rejected]
        return bool(codes) and all(found == {"stale"} for found in codes)

    @property
    def created(self) -> bool:
        """Return whether any object is new."""
        return any(result.action == CREATED for result in self.results)

    def as_json(self) -> dict[str, Any]:
        """Return the report as REST and ``--json`` spell it."""
        return {
            "dry_run": self.dry_run,
            "undone": self.undone,
            "results": [result.as_json() for result in self.results],
            "findings": [finding.as_json() for finding in self.findings],
        }
