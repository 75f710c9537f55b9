"""The JSON that agents send, to plain reports: every problem at once, each with its path.

Shape only: what a report may say about the world is for ``scheduling.agents`` to judge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuplatform.common.fields import Fields, type_of
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.reasons import sentence
from scheduling.agent_reports import MOST_REPORTS, Report, Told
from scheduling.muster import MemberName
from scheduling.specs import NodeSpec
from scheduling.workload_body import instant_of, problem_of

MOST_SEQUENCE = 2**53 - 1  # what every reader of JSON keeps exactly
EXIT_CODES = (-255, 255)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Hello:
    """Who is there. ``epoch`` None: it remembers nothing and begins anew."""

    epoch: int | None
    version: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Reports of one epoch, in their order."""

    epoch: int
    reports: tuple[Report, ...]


def read_hello(body: Any) -> Hello:
    """Return what an agent says of itself.

    Raises:
        Rejected: wrong types or unknown fields.
    """
    fields = _fields(body)
    hello = Hello(fields.integer("epoch", minimum=1), fields.text("version")[:64])
    _close(fields)
    return hello


def read_batch(body: Any) -> Batch:
    """Return the reports that ``body`` holds.

    Raises:
        Rejected: wrong types, unknown or missing fields, too many reports.
    """
    fields = _fields(body)
    epoch = fields.integer("epoch", 1, minimum=1, required=True)
    rows = fields.children("reports")
    if len(rows) > MOST_REPORTS:
        numbers = {"value": len(rows), "low": 0, "high": MOST_REPORTS}
        fields.report("OUT_OF_RANGE", "reports", **numbers)
        rows = []
    reports = tuple(_report(row) for row in rows)
    _close(fields)
    return Batch(epoch or 1, reports)


def _fields(body: Any) -> Fields:
    if not isinstance(body, Mapping):
        numbers = {"path": "body", "expected": "a mapping", "found": type_of(body)}
        raise Rejected([Problem("", "BAD_TYPE", sentence("BAD_TYPE", numbers))])
    return Fields(body, "Agent", [])


def _close(fields: Fields) -> None:
    fields.close()
    if fields.diagnostics:
        raise Rejected([problem_of(finding) for finding in fields.diagnostics])


def _report(row: Fields) -> Report:
    sequence = row.integer("sequence", 1, minimum=1, maximum=MOST_SEQUENCE, required=True) or 1
    told = Told(row.choice("kind", [kind.value for kind in Told], Told.READY.value))
    if "kind" not in row:
        row.report("REQUIRED", "kind")
    at = instant_of(row, "at")
    match told:
        case Told.NODE:
            node = row.child("node", required=True)
            keeps = "schedulable" not in node
            report = Report(sequence, told, at, node=_node(node), keeps_cordon=keeps)
        case Told.NODE_GONE:
            report = Report(sequence, told, at, name=row.text("name", required=True))
        case _:
            report = _of_member(row, Report(sequence, told, at))
    row.close()
    return report


def _of_member(row: Fields, report: Report) -> Report:
    text = row.text("member", required=True)
    try:
        member = MemberName.parse(text) if text else None
    except ValueError:
        member = None
        allowed = "12.1.worker.0.1@node-3"
        row.report("BAD_VALUE", "member", value=text[:64], allowed=allowed)
    code, why = None, ""
    if report.told in (Told.FAILED, Told.LOST, Told.RELEASED):
        low, high = EXIT_CODES
        code = row.integer("exit_code", minimum=low, maximum=high)
        why = row.text("why")[:64]
    if report.told is Told.FAILED and code == 0:
        row.report("BAD_VALUE", "exit_code", value="0", allowed="any other: 0 is no failure")
    code = 0 if report.told is Told.FINISHED else code
    return Report(report.sequence, report.told, report.at, member, exit_code=code, why=why)


def _node(row: Fields) -> NodeSpec:
    capacity = row.quantities("capacity")
    spec = NodeSpec(
        name=row.text("name", required=True),
        labels=row.labels("labels"),
        annotations=row.labels("annotations"),
        taints=tuple(_taint(taint) for taint in row.children("taints")),
        capacity=capacity,
        allocatable=row.quantities("allocatable") or capacity,
        ready=row.flag("ready", True),
        schedulable=row.flag("schedulable", True),
    )
    row.close()
    return spec


def _taint(row: Fields) -> dict[str, str]:
    taint = {
        "key": row.text("key", required=True),
        "value": row.text("value"),
        "effect": row.choice("effect", EFFECTS, "NoSchedule"),
    }
    row.close()
    return taint
