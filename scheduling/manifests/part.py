"""What a reader made of one manifest of work."""

from dataclasses import dataclass, field

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import Fields
from gpuplatform.common.manifests import Document
from scheduling.specs import CheckSpec, NodeSpec, WorkloadSpec


@dataclass(slots=True)
class Part:
    """The specs of one document, and what is to be said about them.

    A document without specs of its own belongs to a gang that another document makes
    (``member_of``), or has no pods.
    """

    document: Document
    specs: list[WorkloadSpec | NodeSpec | CheckSpec] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    member_of: str = ""

    def fields(self) -> Fields:
        """Return the body as checked fields that report into this part."""
        return self.document.fields(self.diagnostics)

    def report(self, code: str, path: str = "", **numbers: str | int) -> None:
        """Report ``code`` about the whole document or one path of it."""
        self.diagnostics.append(Diagnostic(code, self.document.subject, path, numbers))
