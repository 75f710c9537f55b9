"""The articles' manifests, and how tests load several of them into an empty database."""

from collections.abc import Iterable
from pathlib import Path

from gpuplatform.common.reasons import INFO
from gpuplatform.doors.importer import import_documents
from gpuplatform.doors.report import ImportReport, ObjectResult

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
CLUSTERS = {4: "cluster-1-node", 16: "cluster", 32: "cluster-32"}


def text_of(name: str) -> str:
    return (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")


def load(*names: str) -> ImportReport:
    """Import the named samples one after the other; return the last one's report."""
    report = ImportReport()
    for name in names:
        report = import_documents(text_of(name), actor=None)
    return report


def on_cluster(gpus: int, *names: str) -> ImportReport:
    """Import the cluster of so many GPUs, then the samples; 0 GPUs: no cluster at all."""
    clusters = [CLUSTERS[gpus]] if gpus else []
    return load(*clusters, *names)


def result_of(report: ImportReport, kind: str, name: str) -> ObjectResult:
    """Return the result of one object; ``name`` is with its namespace, if it has one."""
    return next(r for r in report.results if (r.kind, r.name) == (kind, name))


def worth_saying(result: ObjectResult) -> dict[str, list[dict[str, str | int]]]:
    """Return errors and warnings by code, with the numbers of each time."""
    found: dict[str, list[dict[str, str | int]]] = {}
    for diagnostic in result.diagnostics:
        if diagnostic.severity != INFO:
            found.setdefault(diagnostic.code, []).append(dict(diagnostic.numbers))
    return found


def flat(values: Iterable[Iterable[object]]) -> list[object]:
    return [value for row in values for value in row]
