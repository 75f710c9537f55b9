"""Live workloads as the engine sees them, from rows: all there are, or those that are named.

Equal pod sets become one object, so that a hundred thousand equal gangs cost the memory of one.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, make_dataclass, replace
from datetime import datetime
from functools import cache, partial
from itertools import starmap
from sys import intern
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from django.conf import settings
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from gpuplatform.common.questions import Question, fetch
from gpuplatform.common.together import read_together
from scheduling import models as rows
from scheduling import persist
from scheduling.engine.parts import leaver, leaving_key
from scheduling.engine.snapshot import Admission, Assignment, PodSet, Workload
from scheduling.engine.terms import BlockerCode, Status
from scheduling.faces import Face, Held
from scheduling.jsontexts import canonical, read_json
from scheduling.readers import lasts
from scheduling.routes import Doors, drained
from scheduling.shapes import SHAPE, SHAPE_TEXTS, pod_sets_of
from scheduling.specs import REQUEUE
from scheduling.waits import first_in_line

GROWTH = UUID("6f1f1c0e-7a52-5d0e-9c55-2f4b8f3a9d10")  # the space of the keys of growth
CAME_SINCE = 2_000  # of those who came since the last cycle, as many may be next
LIVE = (Status.PENDING.value, Status.ADMITTED.value, Status.RUNNING.value)
WORKLOAD = (
    *("uid", "namespace", "name", "queue_name", "ceiling_queue", "team_id", "priority"),
    *("min_member", "preemptible", "stateless", "expected_duration_s", "max_execution_time_s"),
    *("checkpoint_interval_s", "status", "pending_reason", "position", "gpus", "created_at"),
    *("last_checkpoint_at", "resized_at", "version", "queued_at", "requeue_at"),
    *("on_node_loss", "admitted_at", "executed_s"),
)
WORKLOAD_TEXTS = ("role_minima", "blockers", "growth", "gates")
Facts = make_dataclass(
    "Facts", (*WORKLOAD, *(f"{one}_text" for one in WORKLOAD_TEXTS)), slots=True
)


class Placed(NamedTuple):
    """Pods of one pod set on one node."""

    pod_set: str
    node: str
    pods: int
    flavors: Mapping[str, str]
    charges: Mapping[str, int] | None
    devices: list[list[int]]


@dataclass(frozen=True, slots=True)
class RoleRow:
    """A pod set's row: its shape, and how many of its pods are wanted and over."""

    shape: tuple[Any, ...]
    wanted: int | None
    finished: int

    @property
    def name(self) -> str:
        """Return the pod set's name."""
        return str(self.shape[0])

    @property
    def count(self) -> int:
        """Return of how many pods it consists now."""
        return int(self.shape[1])


@dataclass
class Works:
    """What was read: the engine's workloads, and by key what goes with each of them."""

    workloads: list[Workload] = field(default_factory=list)
    faces: dict[str, Face] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)


def growth_key(uid: object) -> str:
    """Return the engine's key of what a running workload asks to become."""
    return str(uuid5(GROWTH, str(uid)))


def keys_of(uid: object) -> tuple[str, str, str]:
    """Return the keys under which the engine may know a workload: itself, a part, its growth."""
    return str(uid), leaving_key(str(uid)), growth_key(uid)


def read_works(
    doors: Doors, uids: Collection[UUID] | None = None, *, waiting: bool = True
) -> Works:
    """Return live work and what still stands of work that is over. 4 queries for each 10,000.

    Args:
        doors: where queue names lead.
        uids: which; all by default.
        waiting: also what holds nothing.
    """
    found = Works()
    for part in [None] if uids is None else persist.batches(uids):
        _read(partial(_ask, uids=part, waiting=waiting), doors, found)
    return found


def read_standing(
    doors: Doors, also: Collection[str] = (), first: int = 0
) -> tuple[Works, list[Workload]]:
    """Return what holds something, and who may be next in each queue. 1 query.

    They are few, and read at once, so that they are of one instant.

    Args:
        doors: where queue names lead.
        also: keys of work that holds nothing and is read as well.
        first: how many at the beginning of each line are read, see :func:`first_in_line`.
    """
    live = _live(waiting=False, also=also)
    most = first * len(doors.cluster_queues) + CAME_SINCE
    words = (_open_ones, _facts, _roles, _stands)
    asked = [word(live) for word in words]
    if first:
        line = first_in_line(first, most).values("uid")
        asked += [_facts(rows.Workload.objects.filter(uid__in=line)), _roles_in(line)]
    told = read_together(*asked)
    found, heads = Works(), Works()
    answers: Mapping[Any, Answers] = dict(zip(words, told, strict=False))
    _read(answers.__getitem__, doors, found)
    if first:
        empty: Mapping[Any, Answers] = {_open_ones: (), _stands: ()}
        _read({**empty, _facts: told[-2], _roles: told[-1]}.__getitem__, doors, heads)
    return found, heads.workloads


Live = QuerySet[rows.Workload]
Answers = Iterable[tuple[Any, ...]]
Ask = Callable[[Callable[[Live], QuerySet[Any, Any]]], Answers]


def _ask(
    word: Callable[[Live], QuerySet[Any, Any]], *, uids: Collection[UUID] | None, waiting: bool
) -> Answers:
    """Return what rows say of live workloads, all or these; ``word`` makes a query of them."""
    if uids is None:
        return fetch(word(_live(waiting=waiting)))
    return _question(word, waiting=waiting).ask(uids)


@cache
def _question(word: Callable[[Live], QuerySet[Any, Any]], *, waiting: bool) -> Question:
    return Question(lambda keys: word(_live(waiting=waiting).filter(uid__among=keys)))


def _live(*, waiting: bool, also: Collection[str] = ()) -> QuerySet[rows.Workload]:
    standing: Any = rows.Admission.objects.filter(released_at=None).order_by().values("workload")
    if waiting:
        return rows.Workload.objects.filter(Q(status__in=LIVE) | Q(uid__in=standing))
    if also:  # one question of keys: either one or the other would be looked for in every row
        named = rows.Workload.objects.filter(uid__in=also, status__in=LIVE)
        standing = standing.union(named.order_by().values("uid"))
    return rows.Workload.objects.filter(uid__in=standing)


def texts_of(names: Iterable[str]) -> dict[str, Cast]:
    """Return what reads columns of JSON as texts, each under its name and ``_text``."""
    return {f"{name}_text": Cast(name, TextField()) for name in names}


def _read(ask: Ask, doors: Doors, found: Works) -> None:
    for line in ask(_open_ones):
        one = Held(*line)
        key = str(one.workload_id)
        found.held[leaving_key(key) if one.is_part else key] = one
    # The workloads before their pod sets: one that is submitted between the two queries must be
    # seen with its pod sets or not at all, for a gang without pods fits everywhere.
    works = starmap(Facts, ask(_facts))
    roles = _by_workload(ask(_roles))
    placed = _placed(ask(_stands))
    for row in works:
        _add(row, roles[row.uid], placed, doors, found)


def _open_of(live: Live) -> QuerySet[rows.Admission]:
    scope = live.order_by().values("uid")
    return rows.Admission.objects.filter(released_at=None, workload__in=scope).order_by()


def _open_ones(live: Live) -> QuerySet[rows.Admission, Any]:
    facts = (*Held._fields[:7], "workload__namespace", "workload__team_id")
    return _open_of(live).values_list(*facts)


def _facts(live: Live) -> QuerySet[rows.Workload, Any]:
    texts = texts_of(WORKLOAD_TEXTS)
    return live.order_by("created_at", "uid").annotate(**texts).values_list(*WORKLOAD, *texts)


def _roles(live: Live) -> QuerySet[rows.PodSet, Any]:
    return _roles_in(live.order_by().values("uid"))


def _roles_in(scope: Any) -> QuerySet[rows.PodSet, Any]:
    texts = texts_of(SHAPE_TEXTS)
    of = rows.PodSet.objects.filter(workload__in=scope).order_by("workload_id", "position")
    columns = ("workload_id", "wanted", "finished", *SHAPE, *texts)
    return of.annotate(**texts).values_list(*columns)


def roles_in(scope: Any) -> defaultdict[UUID, list[RoleRow]]:
    """Return the pod sets of the workloads of a query, in their order. 1 query."""
    return _by_workload(fetch(_roles_in(scope)))


def _by_workload(lines: Answers) -> defaultdict[UUID, list[RoleRow]]:
    found: defaultdict[UUID, list[RoleRow]] = defaultdict(list)
    shapes: dict[tuple[Any, ...], tuple[Any, ...]] = {}  # of a hundred thousand, most are alike
    for uid, wanted, finished, *said in lines:
        shape = tuple(said)
        found[uid].append(RoleRow(shapes.setdefault(shape, shape), wanted, finished))
    return found


def _stands(live: Live) -> QuerySet[rows.Placement, Any]:
    texts = texts_of(("flavors", "charges", "devices"))
    scope = live.order_by().values("uid")
    of = rows.Placement.objects.filter(admission__released_at=None, admission__workload__in=scope)
    columns = ("admission_id", "pod_set", "node", "count", *texts)
    return of.annotate(**texts).order_by("admission_id", "pod_set", "node").values_list(*columns)


def _placed(lines: Answers) -> defaultdict[int, list[Placed]]:
    found: defaultdict[int, list[Placed]] = defaultdict(list)
    for pk, pod_set, node, count, flavors, charges, devices in lines:
        charged = None if charges is None else read_json(charges)
        found[pk].append(
            Placed(pod_set, node, count, read_json(flavors), charged, read_json(devices))
        )
    return found


def _add(
    row: Any,
    roles: list[RoleRow],
    placed: Mapping[int, list[Placed]],
    doors: Doors,
    found: Works,
) -> None:
    key = str(row.uid)
    held = found.held.get(key)
    stand = placed.get(held.pk, []) if held else []
    runs = _workload(row, roles, held, stand, doors)
    found.workloads.append(runs)
    found.faces[key] = Face(
        row.uid,
        runs.name,
        row.version,
        intern(row.status),
        row.team_id,
        row.gpus,
        (row.pending_reason, canonical(row.blockers_text), row.position),
        canonical(row.growth_text),
        row.resized_at,
        row.admitted_at,
        row.executed_s,
    )
    part = found.held.get(leaving_key(key))
    if part:
        pods = admission_of(part.admitted_at, placed.get(part.pk, []))
        found.workloads.append(leaver(runs, pods.assignments))
    if held and held.evicted_at is None and any(role.wanted for role in roles):
        found.workloads.append(_grown(runs, row, roles, doors))


def _grown(runs: Workload, row: Any, roles: Iterable[RoleRow], doors: Doors) -> Workload:
    """Return a running workload as large as it asks to be, waiting (``admission.md`` K37)."""
    since = read_json(row.growth_text).get("since")
    wanted = {role.name: role.wanted or role.count for role in roles}
    return replace(
        runs,
        key=growth_key(row.uid),
        created_at=datetime.fromisoformat(since).timestamp() if since else runs.created_at,
        pod_sets=tuple(replace(p, count=wanted[p.name]) for p in runs.pod_sets),
        admission=None,
        blocked=doors.way(row.namespace, row.queue_name).blocked if row.queue_name else "",
        reclaimable={},
        replaces=runs.key,
    )


def _workload(
    row: Any, roles: list[RoleRow], held: Held | None, stand: list[Placed], doors: Doors
) -> Workload:
    route, door, kept_out = doors.way(row.namespace, row.queue_name)
    if held is not None:  # what is held stays where it was admitted
        held_in = held.cluster_queue
        queue, why = held_in if held_in in doors.cluster_queues else "", drained(route)
    elif row.queue_name:
        queue = route.cluster_queue if route else row.queue_name
        why = kept_out
    else:
        queue, why = "", ""
    not_before = row.requeue_at.timestamp() if row.requeue_at else None
    if held is None and read_json(row.gates_text):
        why = BlockerCode.GATED.value
    elif held is None and not why:
        why, not_before = doors.rests(queue, row.team_id, not_before)
    shapes = tuple(role.shape for role in roles)
    rules = settings.RESOURCE_TRANSFORMATIONS
    pod_sets, least = pod_sets_of(shapes, row.min_member, row.role_minima_text, rules)
    return Workload(
        key=str(row.uid),
        name=f"{row.namespace}/{row.name}",
        queue=queue or None,
        priority=row.priority,
        created_at=(row.queued_at or row.created_at).timestamp(),
        pod_sets=_as_admitted(pod_sets, stand) if stand else pod_sets,
        admission=admission_of(held.admitted_at, stand) if held else None,
        releasing=held is not None and held.evicted_at is not None,
        preemptible=row.preemptible,
        blocked=why,
        ceiling_queue=doors.ceiling(row.ceiling_queue, queue),
        version=row.version,
        local_queue=door,
        last_checkpoint_at=row.last_checkpoint_at.timestamp() if row.last_checkpoint_at else None,
        duration_s=lasts(row.expected_duration_s, row.max_execution_time_s),
        reclaimable={role.name: role.finished for role in roles if role.finished},
        stateless=row.stateless,
        checkpoint_interval_s=row.checkpoint_interval_s,
        min_member=least,
        not_before=not_before,
        mends=row.on_node_loss != REQUEUE,
    )


def _as_admitted(pod_sets: tuple[PodSet, ...], stand: Iterable[Placed]) -> tuple[PodSet, ...]:
    """Return pod sets that are charged what they were charged when they were admitted.

    A change of the transformations counts for work that is admitted after it.
    """
    frozen: dict[str, Mapping[str, int] | None] = {}
    for one in stand:
        frozen.setdefault(one.pod_set, one.charges)
    if all(frozen.get(p.name, p.charges) == p.charges for p in pod_sets):
        return pod_sets
    return tuple(replace(p, charges=frozen.get(p.name, p.charges)) for p in pod_sets)


def admission_of(admitted_at: datetime, stand: Iterable[Placed]) -> Admission:
    """Return what is held as the engine sees it."""
    by_pod_set: defaultdict[str, list[Placed]] = defaultdict(list)
    for one in stand:
        by_pod_set[one.pod_set].append(one)
    return Admission(
        admitted_at=admitted_at.timestamp(),
        assignments=tuple(
            Assignment(
                pod_set=name,
                count=sum(one.pods for one in parts),
                flavors=parts[0].flavors,
                nodes={one.node: one.pods for one in parts if one.node},
                devices={one.node: tuple(map(tuple, one.devices)) for one in parts if one.devices},
            )
            for name, parts in by_pod_set.items()
        ),
    )
