"""Writers of cluster queues, local queues and priority classes."""

from dataclasses import replace

from django.db import transaction

from queues.descriptions import (
    as_json,
    describe_cluster_queue,
    describe_local_queue,
    describe_priority_class,
)
from queues.models import ClusterQueue, LocalQueue, PriorityClass, User
from queues.rules import check_cluster_queue, check_local_queue, check_priority_class
from queues.services.cohorts import drop_unnamed, ensure_cohort, replace_quotas
from queues.services.teams import ensure_namespace, known_teams, owner_after
from queues.services.writing import Edit, in_use, refuse, require_row, store
from queues.specs import ClusterQueueSpec, LocalQueueSpec, PriorityClassSpec


@transaction.atomic
def save_cluster_queue(
    spec: ClusterQueueSpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> ClusterQueue:
    """Create or change a cluster queue so that it matches ``spec``; quotas are replaced whole.

    A cohort that nobody declared is made implicitly, and an implicit one that the queue was the
    last to name goes. ``team`` None keeps the owner, "" means nobody. ``if_version`` 0: only if
    it is not there yet.

    Raises:
        Rejected: the spec breaks a rule.
        Stale: the queue changed since the caller saw it.
    """
    refuse(check_cluster_queue(spec, known_teams()))
    row = Edit(ClusterQueue, spec.name, actor, reason, if_version).find(name=spec.name)
    former = row.cohort if row else None
    team = owner_after(spec.team, row.team if row else None)
    after = replace(spec, team=team.name if team else None)
    edit = Edit(ClusterQueue, spec.name, actor, reason, team=team.name if team else "")
    before = describe_cluster_queue(row) if row else None
    columns = _columns(spec) | {
        "team": team,
        "cohort": ensure_cohort(spec.cohort, actor=actor) if spec.cohort else None,
    }
    written = store(
        edit,
        row,
        columns,
        (before, after),
        lambda owner: replace_quotas(spec.groups, cluster_queue=owner),
    )
    drop_unnamed(former, actor=actor)
    return written


def _columns(spec: ClusterQueueSpec) -> dict[str, object]:
    return {
        "name": spec.name,
        "queueing_strategy": spec.queueing_strategy,
        "stop_policy": spec.stop_policy,
        "fair_weight": spec.fair_weight,
        "namespace_selector": as_json(spec.namespace_selector),
        "within_cluster_queue": spec.preemption.within_cluster_queue,
        "reclaim_within_cohort": spec.preemption.reclaim_within_cohort,
        "borrow_within_cohort": spec.preemption.borrow_within_cohort,
        "max_priority_threshold": spec.preemption.max_priority_threshold,
        "reclaimable": spec.reclaimable,
        "undeclared": spec.undeclared,
        "when_can_borrow": spec.fungibility.when_can_borrow,
        "when_can_preempt": spec.fungibility.when_can_preempt,
        "flavor_preference": spec.fungibility.preference,
        "minimum_runtime_s": spec.minimum_runtime_s,
        "yields_to_own": spec.yields_to_own,
        "admission_order": spec.admission_order,
        "priority_first": spec.priority_first,
        "carried": as_json(spec.carried),
    }


@transaction.atomic
def delete_cluster_queue(
    name: str, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> None:
    """Delete a cluster queue to which no local queue leads and in which nothing lives (K17).

    Raises:
        Rejected: it is not there, or still needed.
        Stale: it changed since the caller saw it.
    """
    row = Edit(ClusterQueue, name, actor, reason, if_version).find(name=name)
    refuse(require_row(row))
    assert row is not None
    doors = [str(door) for door in LocalQueue.objects.filter(cluster_queue=name)[:5]]
    refuse([in_use(", ".join(doors))] if doors else [])
    team, cohort = row.team, row.cohort
    edit = Edit(ClusterQueue, name, actor, reason, team=team.name if team else "")
    edit.remove(row, describe_cluster_queue(row))
    drop_unnamed(cohort, actor=actor)


@transaction.atomic
def save_local_queue(
    spec: LocalQueueSpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> LocalQueue:
    """Create or change a local queue; its namespace comes to exist with it.

    Raises:
        Rejected: the spec breaks a rule; the target cannot change (K8).
        Stale: the local queue changed since the caller saw it.
    """
    key = f"{spec.namespace}/{spec.name}"
    edit = Edit(LocalQueue, key, actor, reason, if_version, _team_behind(spec.cluster_queue))
    row = edit.find(namespace=spec.namespace, name=spec.name)
    current = describe_local_queue(row) if row else None
    refuse(check_local_queue(spec, current))
    ensure_namespace(spec.namespace, actor=actor)
    columns = as_json(spec) | {"fair_weight": spec.fair_weight}
    return store(edit, row, columns, (current, spec))


@transaction.atomic
def delete_local_queue(
    namespace: str,
    name: str,
    *,
    actor: User | None,
    reason: str = "",
    if_version: int | None = None,
) -> None:
    """Delete a local queue in which nothing lives.

    Raises:
        Rejected: it is not there, or still needed.
        Stale: it changed since the caller saw it.
    """
    edit = Edit(LocalQueue, f"{namespace}/{name}", actor, reason, if_version)
    row = edit.find(namespace=namespace, name=name)
    refuse(require_row(row))
    assert row is not None
    edit.remove(row, describe_local_queue(row))


def _team_behind(cluster_queue: str) -> str:
    queue = ClusterQueue.objects.filter(name=cluster_queue).select_related("team").first()
    return queue.team.name if queue and queue.team else ""


@transaction.atomic
def save_priority_class(
    spec: PriorityClassSpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> PriorityClass:
    """Create or change a priority class.

    Raises:
        Rejected: the spec breaks a rule (K10).
        Stale: the class changed since the caller saw it.
    """
    refuse(check_priority_class(spec))
    edit = Edit(PriorityClass, f"{spec.kind}/{spec.name}", actor, reason, if_version)
    row = edit.find(kind=spec.kind, name=spec.name)
    current = describe_priority_class(row) if row else None
    return store(edit, row, as_json(spec), (current, spec))


@transaction.atomic
def delete_priority_class(
    kind: str,
    name: str,
    *,
    actor: User | None,
    reason: str = "",
    if_version: int | None = None,
) -> None:
    """Delete a priority class; workloads keep the number they got from it.

    Raises:
        Rejected: it is not there, or a room above needs it.
        Stale: it changed since the caller saw it.
    """
    edit = Edit(PriorityClass, f"{kind}/{name}", actor, reason, if_version)
    row = edit.find(kind=kind, name=name)
    refuse(require_row(row))
    assert row is not None
    edit.remove(row, describe_priority_class(row))
