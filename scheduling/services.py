"""The writers of what should run and on what: one transaction each, audited, then a wake-up."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from gpuplatform.common import audit, clock
from gpuplatform.common.diagnostics import Diagnostic, errors_of, unsaid
from gpuplatform.common.models import Change
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.wakeup import request_cycle, wake
from queues.access import Actor
from queues.choices import PriorityKind
from queues.labels import tier_labels
from queues.models import (
    ClusterQueue,
    Namespace,
    PriorityClass,
    ResourceFlavor,
    Team,
    TopologyLevel,
    User,
)
from queues.services.writing import Edit, refuse, require_row, store
from scheduling import lifecycle, persist
from scheduling.judging import world_for_judging
from scheduling.loader import load_platform, load_snapshot
from scheduling.models import Node, PodSet, Workload, WorkloadEvent
from scheduling.node_rules import Pool, check_node
from scheduling.priorities import check_number
from scheduling.routes import hints, load_doors
from scheduling.rules import IMPOSSIBLE, check_workload, resolved, without_answered
from scheduling.specs import NodeSpec, WorkloadSpec, subject_of
from scheduling.submitted import audited, columns_of, is_taken, know_related, pod_set_columns
from scheduling.world import World

TEAM_ANNOTATIONS = ("gpuplatform.io/team", "finops.io/equipo")
BY_REQUEST = "UserRequest"  # why it is out of the queue: somebody asked
TEAM_LABELS = ("gpuplatform.io/team", "equipo", "team")


@dataclass(frozen=True, slots=True)
class Submission:
    """An accepted workload and what its owner should know. ``workload`` None: a dry run."""

    workload: Workload | None
    diagnostics: tuple[Diagnostic, ...]


class Refused(Rejected):
    """A workload that broke rules: all findings, the warnings too. Nothing was changed."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__([d.as_problem() for d in errors_of(self.diagnostics)])
        self.warnings = tuple(d.as_json() for d in self.diagnostics if not d.is_error)


def load_world(*, works: bool = True) -> World:
    """Return what workloads are checked against, in a fixed number of queries.

    No rule looks at other work; without ``works`` it is not read, and the rest only where it has
    changed (:mod:`scheduling.judging`).
    """
    return _read_world(works=True) if works else world_for_judging(_read_platform)


def _read_platform() -> World:
    return _read_world(works=False)


def _read_world(*, works: bool) -> World:
    doors, rows = load_doors(), list(PriorityClass.objects.all())
    defaults = [r.value for r in rows if r.global_default and r.kind == PriorityKind.POD]
    return World(
        snapshot=load_snapshot() if works else load_platform(doors=doors),
        doors=doors,
        priorities={(row.kind, row.name): row.value for row in rows},
        default_priority=min(defaults, default=0),
    )


def owner_of(spec: WorkloadSpec, world: World) -> Team | None:
    """Return the team that a workload belongs to (``decisions.md`` 6).

    Its queue's team; else what an annotation or a label names; else its namespace's owner.
    """
    if team := _queue_team(spec, world):
        return team
    named = [spec.annotations.get(key) for key in TEAM_ANNOTATIONS]
    named += [spec.labels.get(key) for key in TEAM_LABELS]
    for name in filter(None, named):
        if team := Team.objects.filter(name=name).first():
            return team
    return _namespace_team(spec, world)


def _queue_team(spec: WorkloadSpec, world: World) -> Team | None:
    def read() -> dict[str, Team | None]:
        return {row.name: row.team for row in ClusterQueue.objects.select_related("team")}

    name = world.cluster_queue_of(spec)
    return world.remembered("queue teams", read).get(name) if name else None


def _namespace_team(spec: WorkloadSpec, world: World) -> Team | None:
    def read() -> Team | None:
        rows = Namespace.objects.select_related("team")
        namespace = rows.filter(name=spec.namespace).first()
        return namespace.team if namespace else None

    return world.remembered(f"team of {spec.namespace}", read)


def within_rights(spec: WorkloadSpec, world: World, actor: Actor) -> World:
    """Return the world in which ``actor``'s work is judged: what is foreign is not there.

    Whether a namespace or a queue of others exists must not show: to who does not see them,
    they are as unknown as a name that was never given, and the rules say so.

    Raises:
        Refused: ``PRIORITY_ABOVE_LIMIT``, so high a number is for platform admins;
            ``QUEUE_REQUIRED``, work outside every quota is, too;
            ``NOT_YOUR_TEAM``, the team is seen and is not the actor's.
    """
    number = None if spec.priority_class else spec.priority
    if found := list(check_number(number, actor, subject_of(spec))):
        raise Refused(found)
    if not spec.queue and not actor.may_leave_quota:
        raise Refused([Diagnostic("QUEUE_REQUIRED", subject_of(spec), "queue")])
    if spec.queue and world.cluster_queue_of(spec) is None:
        world = replace(world, hints=hints(spec.namespace, spec.queue, actor))
    if _may_run(spec, world, actor):
        return world
    if actor.sees_everything or _is_own_door(spec, world, actor):
        numbers = {"queue": spec.queue or spec.namespace}
        raise Refused([Diagnostic("NOT_YOUR_TEAM", subject_of(spec), "queue", numbers)])
    if settings.ACCEPT_IMPOSSIBLE_WORKLOADS:  # what is unknown would be kept as blocked
        asked = {"queue": spec.queue, "namespace": spec.namespace, **world.hints}
        raise Refused([Diagnostic("QUEUE_NOT_FOUND", subject_of(spec), "queue", asked)])
    return replace(world, doors=replace(world.doors, local_queues={}, cluster_queues={}))


def _is_own_door(spec: WorkloadSpec, world: World, actor: Actor) -> bool:
    """Return whether the work names a LocalQueue of a namespace of the actor's own team."""
    host = _namespace_team(spec, world)
    there = (spec.namespace, spec.queue) in world.doors.local_queues
    return there and host is not None and actor.may_submit(host.pk)


def _may_run(spec: WorkloadSpec, world: World, actor: Actor) -> bool:
    """Return whether the work is for a team of the actor's, in a namespace that is open to it.

    A queue that nobody knows is left to the rules, which say so.
    """
    known = not spec.queue or world.cluster_queue_of(spec) is not None
    owner = owner_of(spec, world)
    if owner is None and not known and not settings.ACCEPT_IMPOSSIBLE_WORKLOADS:
        return True
    allowed = actor.may_submit(owner.pk if owner else None)
    if allowed and owner != _queue_team(spec, world):  # a label must not open a foreign house
        host = _namespace_team(spec, world)
        allowed = host is None or actor.may_submit(host.pk)
    return allowed


def submit_workload(
    spec: WorkloadSpec,
    *,
    actor: User | None,
    dry_run: bool = False,
    known: Iterable[Diagnostic] = (),
    world: World | None = None,
) -> Submission:
    """Take a workload in, pending, if it can ever run.

    Args:
        spec: what is wanted; levels may be short names.
        actor: who asks; None for the system. Doors have checked that they may.
        dry_run: check everything, write nothing.
        known: what the reader of the document found; its errors refuse as well.
        world: what to check against; read from the tables unless given.

    Raises:
        Refused: all reasons with numbers; code ``name_taken`` where a live one has the name.
    """
    world = world or load_world(works=False)
    found = judged(spec, world, known)
    if is_taken(spec):
        raise name_taken(spec, found)
    if dry_run:
        return Submission(None, found)
    row = _write(resolved(spec, world), actor, owner_of(spec, world), found, world)
    return Submission(row, found)


def judged(
    spec: WorkloadSpec, world: World, known: Iterable[Diagnostic] = ()
) -> tuple[Diagnostic, ...]:
    """Return what an owner should know of a workload that may be taken in.

    Raises:
        Refused: it can never run, or is not well formed.
    """
    known = tuple(without_answered(known, spec, world))
    found = (*known, *unsaid(check_workload(spec, world), known))
    if any(not _tolerated(finding) for finding in errors_of(found)):
        raise Refused(found)
    return found


def _tolerated(diagnostic: Diagnostic) -> bool:
    return settings.ACCEPT_IMPOSSIBLE_WORKLOADS and diagnostic.code in IMPOSSIBLE


def name_taken(spec: WorkloadSpec, found: Iterable[Diagnostic]) -> Refused:
    """Return the refusal of a workload whose name a live one has."""
    numbers = {"name": spec.name, "namespace": spec.namespace}
    return Refused([*found, Diagnostic("name_taken", subject_of(spec), "name", numbers)])


def _write(
    spec: WorkloadSpec,
    actor: User | None,
    team: Team | None,
    found: tuple[Diagnostic, ...],
    world: World,
) -> Workload:
    row = Workload(**columns_of(spec, actor, team, found, world))
    pods = [
        PodSet(workload=row, position=position, **pod_set_columns(pod_set))
        for position, pod_set in enumerate(spec.pod_sets)
    ]
    told = [WorkloadEvent(workload=row, at=row.created_at, kind="submitted")]
    said = audited(spec, row.uid, row.gpus)
    entry = audit.entry(actor, *said, team=team.name if team else "")
    change = Change(topic=lifecycle.CHANGED, key=str(row.uid))
    try:
        with transaction.atomic(savepoint=False):  # who goes on after a refusal has one
            persist.create_together([row], pods, told, [entry], [change])
            wake()
            if not spec.active:
                lifecycle.deactivate(row, BY_REQUEST, at=row.created_at)
    except IntegrityError as error:  # somebody was faster
        raise name_taken(spec, found) from error
    if spec.active:  # what has just been written need not be read for the answer
        know_related(row, pod_sets=pods, events=told)
    return row


def cancel_workload(uid: UUID | str, *, actor: User | None, reason: str = "") -> Workload:
    """End a workload by request; quota and nodes are released once its pods are gone.

    Raises:
        Rejected: code ``not_found``, or ``already_finished``.
    """
    with transaction.atomic():
        row = Workload.objects.select_for_update().filter(uid=uid).select_related(None).first()
        refuse(require_row(row))
        assert row is not None
        if not lifecycle.cancel(row, at=clock.now(), reason=reason[:40]):
            words = _("the workload has ended already, or has just changed; look again")
            raise Rejected([Problem("status", "already_finished", words)])
        audit.record(
            actor,
            "workload.cancelled",
            ("Workload", f"{row.namespace}/{row.name}"),
            before={"uid": str(row.uid)},
            reason=reason,
            team=row.team.name if row.team else "",
        )
        request_cycle("workload", str(row.uid))
    return row


# ---- nodes -----------------------------------------------------------------------------------
def describe_node(row: Node) -> NodeSpec:
    """Return the node as it stands in the tables."""
    return NodeSpec(
        name=row.name,
        labels=row.labels,
        annotations=row.annotations,
        taints=tuple(row.taints),
        capacity=row.capacity,
        allocatable=row.allocatable,
        ready=row.ready,
        schedulable=row.schedulable,
    )


def _topology_pools() -> dict[str, Pool]:
    """Return the flavors that have a topology, each with its nodes' labels and its levels."""
    levels: dict[str, list[str]] = {}
    for row in TopologyLevel.objects.select_related("topology").order_by("position"):
        levels.setdefault(row.topology.name, []).append(row.node_label)
    return {
        flavor.name: (flavor.node_labels, levels.get(flavor.topology, []))
        for flavor in ResourceFlavor.objects.exclude(topology="")
    }


@transaction.atomic
def save_node(
    spec: NodeSpec,
    *,
    actor: User | None,
    reason: str = "",
    if_version: int | None = None,
    keeps_tiers: bool = True,
) -> Node:
    """Make the node be what its cluster reports; equal reports change nothing.

    Labels of HyperNodes are ours: a cluster does not know them, and its report leaves them.

    Raises:
        Rejected: the report breaks a rule.
        Stale: the node changed since the caller saw it.
    """
    edit = Edit(Node, spec.name, actor, reason, if_version)
    row = edit.find(name=spec.name)
    if row is not None and keeps_tiers:
        spec = replace(spec, labels={**tier_labels(row.labels), **spec.labels})
    refuse(check_node(spec, _topology_pools()))
    columns = {
        "name": spec.name,
        "labels": dict(spec.labels),
        "annotations": dict(spec.annotations),
        "taints": [dict(taint) for taint in spec.taints],
        "capacity": dict(spec.capacity),
        "allocatable": dict(spec.allocatable),
        "ready": spec.ready,
        "schedulable": spec.schedulable,
        **({"draining": False} if spec.schedulable else {}),
    }
    return store(edit, row, columns, (describe_node(row) if row else None, spec))


@transaction.atomic
def set_cordon(
    name: str,
    cordoned: bool,
    *,
    actor: User | None,
    reason: str = "",
    drain: bool = False,
    if_version: int | None = None,
) -> Node:
    """Keep new pods off a node, or let them on again; running ones stay unless it is drained.

    ``drain``: what stands there goes elsewhere, or waits again, once its grace has passed, as
    when the node had left.

    Raises:
        Rejected: there is no such node.
        Stale: the node changed at the same time, or since the caller saw it.
    """
    edit = Edit(Node, name, actor, reason, if_version)
    row = edit.find(name=name)
    refuse(require_row(row))
    assert row is not None
    before = {"schedulable": row.schedulable, "draining": row.draining}
    after = {"schedulable": not cordoned, "draining": cordoned and drain}
    if before == after:
        return row
    row = edit.update(row, after)
    verb = "drained" if after["draining"] else "cordoned" if cordoned else "uncordoned"
    edit.note(verb, before, after)
    return row


@transaction.atomic
def delete_node(
    name: str, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> None:
    """Forget a node; whatever stood on it is evicted by the reconciler.

    Raises:
        Rejected: there is no such node.
        Stale: the node changed since the caller saw it.
    """
    edit = Edit(Node, name, actor, reason, if_version)
    row = edit.find(name=name)
    refuse(require_row(row))
    assert row is not None
    edit.remove(row, describe_node(row))
