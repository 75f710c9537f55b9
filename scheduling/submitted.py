"""What the rows of a new workload say, through whichever door it came."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Model

from gpuplatform.common import clock
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.questions import planned_cursor
from queues.models import Team, User
from scheduling import lifecycle
from scheduling.engine.terms import PendingReason, Status
from scheduling.models import Workload
from scheduling.specs import PodSetSpec, WorkloadSpec
from scheduling.world import World

SAME_COLUMNS = (  # fields of a spec that are columns of the same name
    "namespace name kind ceiling_queue priority_class min_member elastic preemptible stateless"
    " expected_duration_s max_execution_time_s checkpoint_interval_s on_failure max_retries"
    " min_success on_node_loss ttl_s template"
)


def is_taken(spec: WorkloadSpec) -> bool:
    """Return whether a live workload has the name; the index says so again where two race."""
    with planned_cursor() as cursor:
        cursor.execute(_live(), [spec.namespace, spec.kind, spec.name])
        return cursor.fetchone() is not None


@cache
def _live() -> str:
    """Return the question, which the ORM would word anew for each workload.

    The status is one of its words: the index of live names has it in its condition.
    """
    table = connection.ops.quote_name(Workload._meta.db_table)  # noqa: SLF001
    named = "namespace = %s AND kind = %s AND name = %s"
    live = f"archived_at IS NULL AND status <> '{Status.FINISHED.value}'"
    return f"SELECT 1 FROM {table} WHERE {live} AND {named} LIMIT 1"  # noqa: S608


def columns_of(
    spec: WorkloadSpec,
    actor: User | None,
    team: Team | None,
    found: tuple[Diagnostic, ...],
    world: World,
) -> dict[str, Any]:
    """Return what a row of a new workload says."""
    same = SAME_COLUMNS.split()
    return {
        **{name: getattr(spec, name) for name in same},
        "queue_name": spec.queue,
        "team": team,
        "submitted_by": actor,
        "priority": world.priority_for(spec),
        "labels": dict(spec.labels),
        "annotations": dict(spec.annotations),
        "role_minima": dict(spec.role_minima),
        "policies": [dict(policy) for policy in spec.policies],
        "gates": list(spec.gates),
        **({} if spec.grace_s is None else {"grace_s": spec.grace_s}),
        "warnings": [diagnostic.as_json() for diagnostic in found],
        "pending_reason": PendingReason.PENDING_EVALUATION.value,
        "gpus": lifecycle.gpus_of((p.count, p.requests) for p in spec.pod_sets),
        "created_at": clock.now(),
    }


def pod_set_columns(spec: PodSetSpec) -> dict[str, Any]:
    """Return what a row of a pod set says."""
    return {
        "name": spec.name,
        "count": spec.count,
        "min_count": spec.min_count,
        "requests": dict(spec.requests),
        "node_selector": dict(spec.node_selector),
        "tolerations": [dict(toleration) for toleration in spec.tolerations],
        "affinity": [[dict(expression) for expression in term] for term in spec.affinity],
        "topology_mode": spec.topology.mode if spec.topology else "",
        "topology_level": (spec.topology.level or "") if spec.topology else "",
        "slices": [asdict(layer) for layer in spec.slices],
        "group": spec.group,
        "subgroup_size": spec.subgroup.size if spec.subgroup else None,
        "min_subgroups": spec.subgroup.min_subgroups if spec.subgroup else None,
        "device_locality": spec.device_locality,
        "device_memory_mib": spec.device_memory_mib,
    }


def audited(spec: WorkloadSpec, uid: UUID, gpus: int) -> tuple[str, tuple[str, str], Any, Any]:
    """Return what the trail says of a submission: action, subject, before and after."""
    after = {"uid": str(uid), "kind": spec.kind, "queue": spec.queue, "gpus": gpus}
    return "workload.submitted", ("Workload", f"{spec.namespace}/{spec.name}"), None, after


def know_related(row: Workload, **parts: Sequence[Model]) -> None:
    """Let a row know what belongs to it, by the names of its relations, as a prefetch does."""
    for name, rows in parts.items():
        known = getattr(row, name).get_queryset()
        known._result_cache, known._prefetch_done = list(rows), True  # noqa: SLF001
        vars(row).setdefault("_prefetched_objects_cache", {})[name] = known
