"""Keep what a submission promises, prices or reports: one service per kind of spec."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from finops import services as finops
from finops.models import Price
from finops.specs import PriceSpec
from gpuplatform.common import audit
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.doors.hypernodes.specs import HyperNodeSpec
from gpuplatform.doors.intake import Item
from gpuplatform.doors.report import CHANGED, CREATED, UNCHANGED
from queues import services as queues
from queues.access import Actor
from queues.descriptions import describe_cluster_queue
from queues.manifests import volcano
from queues.manifests.kueue import check_names
from queues.manifests.reading import VERSION_NOTE
from queues.models import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    Namespace,
    PriorityClass,
    ResourceFlavor,
    Team,
    Topology,
    User,
)
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorSpec,
    LocalQueueSpec,
    NamespaceSpec,
    PriorityClassSpec,
    TeamSpec,
    TopologySpec,
)
from scheduling import checking
from scheduling import services as scheduling
from scheduling.models import AdmissionCheck, Node
from scheduling.specs import CheckSpec, NodeSpec

METADATA_NAME = "kubernetes.io/metadata.name"
REASON = "From a manifest"


def version_of(spec: Any) -> int:
    """Return the version of the object that ``spec`` is about; 0 where there is none."""
    lookups: Mapping[type, tuple[Any, tuple[str, ...]]] = {
        TeamSpec: (Team, ("name",)),
        NamespaceSpec: (Namespace, ("name",)),
        PriorityClassSpec: (PriorityClass, ("kind", "name")),
        TopologySpec: (Topology, ("name",)),
        FlavorSpec: (ResourceFlavor, ("name",)),
        CohortSpec: (Cohort, ("name",)),
        ClusterQueueSpec: (ClusterQueue, ("name",)),
        LocalQueueSpec: (LocalQueue, ("namespace", "name")),
        NodeSpec: (Node, ("name",)),
        CheckSpec: (AdmissionCheck, ("name",)),
    }
    model, keys = lookups[type(spec)]
    rows = model.objects.filter(**{key: getattr(spec, key) for key in keys})
    return rows.values_list("version", flat=True).first() or 0


def keep(item: Item, user: User | None, reason: str = "") -> str:
    """Save the specs of ``item`` in order; return the action on the last, which it is about.

    What a Volcano Queue takes for granted is made only where it is missing. A document that was
    exported alone says which version it shows, and changes no later one.

    Raises:
        Rejected: a rule is broken, or the version is old; the caller undoes what was saved.
    """
    if item.specs and isinstance(item.specs[0], PriceSpec):
        return _keep_prices(item.specs, user, reason or REASON)
    action = UNCHANGED
    for spec in item.specs:
        before = version_of(spec)
        if spec in volcano.IMPLIED and before:
            continue
        seen = _seen_version(item) if before and spec is item.specs[-1] else None
        asked = _asked_of(spec)
        _save(spec, user, reason or REASON, seen)
        _follow_checks(spec, asked, user, reason or REASON)
        after = version_of(spec)
        action = CREATED if not before else CHANGED if after != before else UNCHANGED
        if after != before and isinstance(spec, ClusterQueueSpec) and spec.name in item.by_weight:
            _tell_shared(spec)
    return action


def _asked_of(spec: Any) -> frozenset[str]:
    """Return the admission checks that the queue's last manifest named."""
    if not isinstance(spec, ClusterQueueSpec):
        return frozenset()
    row = ClusterQueue.objects.filter(name=spec.name).only("carried").first()
    return check_names(row.carried) if row else frozenset()


def _follow_checks(spec: Any, before: frozenset[str], user: User | None, reason: str) -> None:
    """Let the checks that a queue's manifest names be asked of its work, and others no more.

    A manifest takes back only what a manifest has asked for; the rest was set up here.
    """
    if isinstance(spec, ClusterQueueSpec):
        names = check_names(spec.carried)
        checking.name_queue(spec.name, names, before - names, actor=user, reason=reason)


def tell_checks(item: Item) -> None:
    """Say of each check that a queue names and nobody has made that people will answer it."""
    for spec in item.specs:
        if isinstance(spec, ClusterQueueSpec):
            known = set(AdmissionCheck.objects.values_list("name", flat=True))
            for name in sorted(check_names(spec.carried) - known):
                subject, path = item.document.subject, "spec.admissionChecks"
                item.diagnostics.append(
                    Diagnostic("CHECK_MADE", subject, path, {"check": name[:64]})
                )


def _tell_shared(spec: ClusterQueueSpec) -> None:
    """Write down that the system worked out a nominal quota, and from which weight."""
    nominals = {q.resource: q.nominal for g in spec.groups for f in g.flavors for q in f.quotas}
    audit.record(
        None,
        "cluster_queue.shared_by_weight",
        ("ClusterQueue", spec.name),
        after={"weight": str(spec.fair_weight), "nominal": nominals},
        reason=REASON,
        team=spec.team or "",
    )


def _keep_prices(specs: list[PriceSpec], user: User | None, reason: str) -> str:
    before = Price.objects.count()
    finops.set_prices(specs, user, reason)
    return CREATED if Price.objects.count() > before else UNCHANGED


def _seen_version(item: Item) -> int | None:
    """Return the version that the document was exported at; None where it does not say."""
    notes = item.document.body.get("metadata", {}).get("annotations") or {}
    text = str(notes.get(VERSION_NOTE, "")) if isinstance(notes, Mapping) else ""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len("999999999")
    return int(text) if is_number else None


def _save(spec: Any, user: User | None, reason: str, seen: int | None) -> None:
    saves: Mapping[type, Any] = {
        TeamSpec: queues.save_team,
        NamespaceSpec: queues.save_namespace,
        PriorityClassSpec: queues.save_priority_class,
        TopologySpec: queues.save_topology,
        FlavorSpec: queues.save_flavor,
        CohortSpec: queues.save_cohort,
        ClusterQueueSpec: queues.save_cluster_queue,
        LocalQueueSpec: queues.save_local_queue,
        NodeSpec: scheduling.save_node,
        CheckSpec: checking.save_named,
    }
    saves[type(spec)](spec, actor=user, reason=reason, if_version=seen)


def may_keep(item: Item, actor: Actor | None) -> bool:
    """Return whether ``actor`` may keep the specs of ``item``; None is the system."""
    if actor is None:
        return True
    needed = {
        NodeSpec: actor.may_operate,
        PriceSpec: actor.may_price,
        HyperNodeSpec: actor.may_operate and actor.may_edit_quota,
    }
    return all(needed.get(type(spec), actor.may_edit_quota) for spec in item.specs)


# ---- owners ------------------------------------------------------------------------------------
def settle_owner(item: Item) -> None:
    """Give the item's object an owner that exists, or say that nobody owns it.

    A label names a team, else a queue for one namespace belongs to that namespace's team. Teams
    are never made on the way.
    """
    for position, spec in enumerate(item.specs):
        if isinstance(spec, NamespaceSpec | ClusterQueueSpec):
            item.specs[position] = _owned(item, spec)


def _owned(item: Item, spec: NamespaceSpec | ClusterQueueSpec) -> Any:
    team = spec.team
    if team and not Team.objects.filter(name=team).exists():
        _say(item, "TEAM_NOT_FOUND", team=team[:63])
        return replace(spec, team=None)
    if team is not None or isinstance(spec, NamespaceSpec):
        return spec
    if ClusterQueue.objects.filter(name=spec.name, team__isnull=False).exists():
        return spec
    owner = _owner_of_only_namespace(spec)
    if owner is None:
        _say(item, "TEAM_UNKNOWN")
    return replace(spec, team=owner)


def _owner_of_only_namespace(spec: ClusterQueueSpec) -> str | None:
    wanted = (spec.namespace_selector or {}).get("matchLabels")
    name = wanted.get(METADATA_NAME) if isinstance(wanted, Mapping) else None
    if not isinstance(name, str):
        return None
    rows = Namespace.objects.filter(name=name, team__isnull=False)
    return rows.values_list("team__name", flat=True).first()


def _say(item: Item, code: str, **numbers: str | int) -> None:
    item.diagnostics.append(Diagnostic(code, item.document.subject, "metadata.labels", numbers))


# ---- Volcano queues without amounts of their own -----------------------------------------------
def share_by_weight(items: Iterable[Item]) -> None:
    """Give Volcano Queues that state no amount a nominal by weight (``decisions.md`` 5)."""
    queues_read = [
        (item, position, spec)
        for item in items
        if item.kind == "Queue"
        for position, spec in enumerate(item.specs)
        if isinstance(spec, ClusterQueueSpec)
    ]
    if not any(_states_nothing(spec) for _, _, spec in queues_read):
        return
    for cohort in sorted({spec.cohort or "" for _, _, spec in queues_read}):
        rows = ClusterQueue.objects.filter(cohort__name=cohort).prefetch_related("quotas")
        peers = {row.name: describe_cluster_queue(row) for row in rows}
        peers |= {spec.name: spec for _, _, spec in queues_read if spec.cohort == cohort}
        shared = volcano.share_by_weight(list(peers.values()), _healthy_capacity())
        by_name = {spec.name: spec for spec in shared}
        for item, position, spec in queues_read:
            if spec.cohort == cohort and _states_nothing(spec):
                item.specs[position] = by_name[spec.name]
                item.by_weight.add(spec.name)


def _states_nothing(spec: ClusterQueueSpec) -> bool:
    cells = (q for group in spec.groups for f in group.flavors for q in f.quotas)
    return not any(cell.nominal for cell in cells)


def _healthy_capacity() -> dict[str, int]:
    total: dict[str, int] = {}
    for allocatable in Node.objects.filter(ready=True, schedulable=True).values_list(
        "allocatable", flat=True
    ):
        for resource, amount in allocatable.items():
            if resource != "pods":
                total[resource] = total.get(resource, 0) + amount
    return total
