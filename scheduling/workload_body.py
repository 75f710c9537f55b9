"""The JSON of ``POST /api/v1/workloads/`` to a spec (``decisions.md`` 9): every problem at once.

Shape only: what a value may be in the world is for ``scheduling.rules`` to say. A field that is
not known is an error here, because a client's typing mistake must not become a default.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import INT32_MAX, Fields, type_of
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.reasons import sentence
from queues.bodies import no_such_field
from scheduling.engine.terms import CheckVerdict
from scheduling.rules import LOCALITIES, check_fields
from scheduling.specs import (
    MOST_GRACE_S,
    ON_FAILURE,
    ON_NODE_LOSS,
    SLICE_MODES,
    CheckSpec,
    NodeChange,
    PodSetChange,
    PodSetSpec,
    SliceSpec,
    SubgroupSpec,
    TopologySpec,
    WorkloadChange,
    WorkloadSpec,
)
from scheduling.topology_rules import MODES

EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
INT32_MIN = -(2**31)
ANSWERS = ("Ready", "Retry", "Rejected")
REASON_LENGTH = 500


def read_workload(body: Any) -> WorkloadSpec:
    """Return the spec that ``body`` describes.

    Raises:
        Rejected: wrong types, missing or unknown fields, bad amounts; each with its path.
    """
    fields, found = _opened(body, "Workload")
    spec = _workload(fields)
    fields.close()
    problems = [problem_of(finding) for finding in found if _refuses(finding)]
    if problems:
        told = {problem.path for problem in problems}
        # What could be read is judged as well: whoever sent three mistakes is told of three.
        raise Rejected([*problems, *(one for one in check_fields(spec) if one.path not in told)])
    return spec


def read_node_change(body: Any) -> NodeChange:
    """Return what ``PATCH`` of a node asks for.

    Raises:
        Rejected: wrong types, unknown or missing fields; each with its path.
    """
    fields, found = _opened(body, "Node")
    if "schedulable" not in fields:
        fields.report("REQUIRED", "schedulable")
    asked = fields.flag("schedulable"), fields.text("reason")[:REASON_LENGTH]
    change = NodeChange(*asked, drain=fields.flag("drain"))
    if change.drain and change.schedulable:
        fields.report("BAD_VALUE", "drain", value="true", allowed="false, where pods may come")
    fields.close()
    if problems := [problem_of(finding) for finding in found]:
        raise Rejected(problems)
    return change


def read_change(body: Any) -> WorkloadChange:
    """Return what ``PATCH`` of a workload asks for; what is left out stays as it is.

    Raises:
        Rejected: wrong types, unknown fields, or nothing at all is asked for.
    """
    fields, found = _opened(body, "Workload")
    change = WorkloadChange(
        tuple(_pod_set_change(row) for row in fields.children("pod_sets")),
        instant_of(fields, "last_checkpoint_at"),
        fields.flag("active") if "active" in fields else None,
        tuple(dict.fromkeys(fields.texts("admission_gates")))
        if "admission_gates" in fields
        else None,
        fields.integer("priority", minimum=INT32_MIN, maximum=INT32_MAX),
        fields.text("reason")[:REASON_LENGTH],
    )
    fields.close()
    asks = replace(change, reason="") != WorkloadChange()
    if not asks and not any(_refuses(finding) for finding in found):
        fields.report("REQUIRED", "pod_sets")  # or a checkpoint: one of the two is asked for
    problems = [problem_of(finding) for finding in found if _refuses(finding)]
    if problems:
        raise Rejected(problems)
    return change


def _pod_set_change(row: Fields) -> PodSetChange:
    change = PodSetChange(
        row.text("name", required=True), row.integer("count"), row.integer("finished")
    )
    row.close()
    return change


def instant_of(fields: Fields, key: str) -> datetime | None:
    """Return an instant with its time zone; None where it is absent or reported as wrong."""
    text = fields.text(key)
    if not isinstance(fields.raw(key), str):
        return None
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo is None else at.astimezone(UTC)  # it may be outside all years
    except (ValueError, OverflowError):
        at = None
    if at is None or at.tzinfo is None:
        allowed = "2026-06-01T12:00:00Z"
        fields.report("BAD_VALUE", key, value=text[:64], allowed=allowed)
        return None
    return at


def _refuses(finding: Diagnostic) -> bool:
    return finding.is_error or finding.code == "UNKNOWN_FIELD"


def problem_of(finding: Diagnostic) -> Problem:
    """Return a finding as something to correct; what is not known here is an error."""
    return no_such_field(finding) if finding.code == "UNKNOWN_FIELD" else finding.as_problem()


def _workload(fields: Fields) -> WorkloadSpec:
    if "priority" in fields and "priority_class" in fields:
        fields.report("BAD_VALUE", "priority", cause="TwoPriorities")
    return WorkloadSpec(
        namespace=fields.text("namespace", required=True),
        name=fields.text("name", required=True),
        pod_sets=tuple(_pod_set(row) for row in fields.children("pod_sets", required=True)),
        queue=fields.text("queue", required=True),
        priority_class=fields.text("priority_class"),
        priority=fields.integer("priority", minimum=INT32_MIN),
        labels=fields.labels("labels"),
        annotations=fields.labels("annotations"),
        min_member=fields.integer("min_member", minimum=1),
        role_minima=_minima(fields),
        elastic=fields.flag("elastic"),
        preemptible=fields.flag("preemptible", True),
        stateless=fields.flag("stateless"),
        expected_duration_s=fields.integer("expected_duration_s", minimum=1),
        max_execution_time_s=fields.integer("max_execution_time_s", minimum=1),
        checkpoint_interval_s=fields.integer("checkpoint_interval_s", minimum=1),
        on_failure=fields.choice("on_failure", ON_FAILURE, "restart"),
        max_retries=fields.integer("max_retries"),
        min_success=fields.integer("min_success", minimum=1),
        on_node_loss=fields.choice("on_node_loss", ON_NODE_LOSS, ON_NODE_LOSS[0]),
        grace_s=fields.integer("termination_grace_s", maximum=MOST_GRACE_S),
        ttl_s=fields.integer("ttl_after_finished_s"),
        gates=tuple(dict.fromkeys(fields.texts("admission_gates"))),
        template=fields.raw("template"),
    )


def _minima(fields: Fields) -> dict[str, int]:
    rows = fields.child("role_minima")
    found = {role: rows.integer(role) for role in rows.body}
    return {role: minimum for role, minimum in found.items() if minimum is not None}


def _pod_set(row: Fields) -> PodSetSpec:
    spec = PodSetSpec(
        name=row.text("name", required=True),
        count=row.integer("count", required=True) or 0,
        requests=row.quantities("requests"),
        min_count=row.integer("min_count", minimum=1),
        node_selector=row.labels("node_selector"),
        tolerations=tuple(_toleration(t) for t in row.children("tolerations")),
        group=row.text("group"),
        device_locality=row.choice("device_locality", LOCALITIES, "any"),
        device_memory_mib=row.integer("device_memory_mib") or 0,
    )
    if "topology" in row:
        spec = replace(spec, topology=_topology(row.child("topology")))
    if "slice" in row:
        spec = replace(spec, slices=(_slice(row.child("slice")),))
    if "slices" in row:
        if "slice" in row:
            row.report("BAD_VALUE", "slices", cause="TwoSlices")
        spec = replace(spec, slices=tuple(_slice(layer) for layer in row.children("slices")))
    if "subgroup" in row:
        spec = replace(spec, subgroup=_subgroup(row.child("subgroup")))
    row.accept("topology", "slice", "slices", "subgroup")
    row.close()
    return spec


def _topology(row: Fields) -> TopologySpec:
    mode = row.choice("mode", MODES, "unconstrained")
    if "mode" not in row:
        row.report("REQUIRED", "mode")
    spec = TopologySpec(mode, row.text("level") or None)
    row.close()
    return spec


def _slice(row: Fields) -> SliceSpec:
    size = row.integer("size", 1, minimum=1, required=True)
    mode = row.choice("mode", SLICE_MODES, SLICE_MODES[0])
    spec = SliceSpec(row.text("level", required=True), size or 1, mode)
    row.close()
    return spec


def _subgroup(row: Fields) -> SubgroupSpec:
    size = row.integer("size", 1, minimum=1, maximum=INT32_MAX, required=True)
    spec = SubgroupSpec(size or 1, row.integer("min_subgroups", 0) or 0)
    row.close()
    return spec


def _toleration(row: Fields) -> dict[str, str]:
    found = {
        "key": row.text("key"),
        "operator": row.choice("operator", ("Equal", "Exists"), "Equal"),
        "value": row.text("value"),
        "effect": row.choice("effect", EFFECTS, ""),
    }
    row.close()
    return {key: value for key, value in found.items() if value}


def read_checkpoint(body: Any) -> datetime | None:
    """Return up to when progress is safe; None: up to now.

    Raises:
        Rejected: wrong types or unknown fields.
    """
    fields, found = _opened(body, "Checkpoint")
    at = instant_of(fields, "at")
    _finished(fields, found)
    return at


def read_answer(body: Any) -> tuple[CheckVerdict, str, int | None]:
    """Return verdict, message and delay of somebody's answer to an admission check.

    Raises:
        Rejected: wrong types, unknown or missing fields.
    """
    fields, found = _opened(body, "CheckAnswer")
    if "state" not in fields:
        fields.report("REQUIRED", "state")
    said = fields.choice("state", ANSWERS, ANSWERS[0])
    message, later = fields.text("message")[:REASON_LENGTH], fields.integer("retry_after_s")
    _finished(fields, found)
    return CheckVerdict(said), message, later


def read_check(body: Any, name: str) -> CheckSpec:
    """Return the admission check that ``body`` describes, under the name of its address.

    Raises:
        Rejected: wrong types, unknown or missing fields, or another name.
    """
    fields, found = _opened(body, "AdmissionCheck")
    said = fields.text("name", name)
    if said != name:
        fields.report("NAME_DIFFERS", "name", value=said[:64], name=name)
    fields.accept("version")
    spec = CheckSpec(
        name,
        fields.text("kind", required=True),
        tuple(dict.fromkeys(fields.texts("queues"))),
        dict(fields.child("parameters").body),
        fields.text("description"),
    )
    _finished(fields, found)
    return spec


def _opened(body: Any, subject: str) -> tuple[Fields, list[Diagnostic]]:
    if not isinstance(body, Mapping):
        numbers = {"path": "body", "expected": "a mapping", "found": type_of(body)}
        raise Rejected([Problem("", "BAD_TYPE", sentence("BAD_TYPE", numbers))])
    found: list[Diagnostic] = []
    return Fields(body, subject, found), found


def _finished(fields: Fields, found: list[Diagnostic]) -> None:
    fields.close()
    if problems := [problem_of(finding) for finding in found if _refuses(finding)]:
        raise Rejected(problems)
