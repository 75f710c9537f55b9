"""Many workloads taken in at once: each by the rules of the single door, all in few statements.

Source: ``product.md`` 2.1 (bulk), ``performance.md`` 5 P8.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID, uuid4

import msgspec
from django.db import IntegrityError, transaction

from gpuplatform.common import audit, clock
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected
from gpuplatform.common.progress import report as report_progress
from gpuplatform.common.wakeup import request_cycle
from queues.access import Actor
from queues.models import Team
from queues.rules.words import check_name
from scheduling import persist
from scheduling.engine.terms import Status
from scheduling.lifecycle import CHANGED
from scheduling.models import PodSet, Workload, WorkloadEvent
from scheduling.rules import resolved
from scheduling.services import (
    TEAM_ANNOTATIONS,
    TEAM_LABELS,
    judged,
    load_world,
    name_taken,
    owner_of,
    within_rights,
)
from scheduling.specs import PodSetSpec, WorkloadSpec
from scheduling.submitted import audited, columns_of, pod_set_columns
from scheduling.world import World

MOST = 1_000  # workloads of one call
TRIES = 3  # where others take names at the same time
_encoder = msgspec.json.Encoder()
_Row = dict[str, Any]
_OWN = {"name", "template"}  # what says nothing about whether a workload can run
_of_kind = attrgetter(*(one.name for one in fields(WorkloadSpec) if one.name not in _OWN))
TICK = timedelta(microseconds=1)  # between two of a call, which keep their order


@dataclass(frozen=True, slots=True)
class Taken:
    """An accepted workload, and what its owner should know. ``uid`` None: a dry run.

    ``kind``: equal for those of which nothing is to be said, and that differ in name and
    submitted document alone; "" where there is something to say.
    """

    spec: WorkloadSpec
    diagnostics: tuple[Diagnostic, ...]
    world: World
    team: Team | None
    uid: UUID | None = None
    gpus: int = 0
    kind: bytes = b""


Answer = Taken | Rejected


def submit_many(
    asked: Sequence[WorkloadSpec | Rejected], *, actor: Actor, dry_run: bool = False
) -> list[Answer]:
    """Take workloads in, pending, each of them that can ever run; the others change nothing.

    Args:
        asked: what is wanted, or why it could not be read; of equal names the first counts.
        actor: who asks.
        dry_run: check everything, write nothing.

    Returns:
        For each what became of it, in the same order.
    """
    court = _Court(load_world(works=False), actor)
    found = []
    for come, one in enumerate(asked):
        report_progress(come, len(asked))
        found.append(court.judge(one))
    for last in range(TRIES - 1, -1, -1):
        answers = _without_taken(found)
        if dry_run:
            return answers
        try:
            with transaction.atomic():
                return _write(answers, actor)
        except IntegrityError:  # somebody took a name meanwhile
            if not last:
                raise
    raise AssertionError("the last try returns or raises")


class _Court:
    """Judges workloads by the rules of the single door; what many have in common only once."""

    def __init__(self, world: World, actor: Actor) -> None:
        self._world, self._actor = world, actor
        self._known: dict[Hashable, tuple[World, Team | None]] = {}
        self._faultless: set[bytes] = set()

    def judge(self, one: WorkloadSpec | Rejected) -> Answer:
        """Return what becomes of a workload, if its name is free."""
        if isinstance(one, Rejected):
            return one
        try:
            world, team = self._rights(one)
            kind = _encoder.encode((id(world), *_of_kind(one)))
            found = self._found(one, world, kind)
            return Taken(one, found, world, team, kind=b"" if found else kind)
        except Rejected as refused:
            return refused

    def _found(self, spec: WorkloadSpec, world: World, kind: bytes) -> tuple[Diagnostic, ...]:
        """Return what is to be said of a workload. Raises Refused as ``judged`` does.

        One that differs from a faultless one in its name alone, and has a good one, is faultless.
        """
        if kind in self._faultless and not any(check_name(spec.name)):
            return ()
        found = judged(spec, world)
        if not found:
            self._faultless.add(kind)
        return found

    def _rights(self, spec: WorkloadSpec) -> tuple[World, Team | None]:
        """Return in which world it is judged, and its owner, asked once for work alike.

        Raises Refused as ``within_rights`` does.
        """
        named = [spec.annotations.get(key) for key in TEAM_ANNOTATIONS]
        named += [spec.labels.get(key) for key in TEAM_LABELS]
        key = (spec.namespace, spec.queue, spec.priority, spec.priority_class, *named)
        if key not in self._known:
            world = within_rights(spec, self._world, self._actor)
            self._known[key] = world, owner_of(spec, world)
        return self._known[key]


def _without_taken(found: Sequence[Answer]) -> list[Answer]:
    """Refuse what has the name of a live workload, or of an earlier one of the call."""
    specs = [one.spec for one in found if isinstance(one, Taken)]
    names = {_name(spec) for spec in specs}
    live = Workload.objects.exclude(status=Status.FINISHED.value).order_by()
    taken: set[tuple[str, str, str]] = set()
    for part in persist.batches(sorted({name for _, _, name in names})):
        rows = live.filter(name__in=part, namespace__in={space for space, _, _ in names})
        taken |= names & set(rows.values_list("namespace", "kind", "name"))
    answers = list[Answer]()
    for one in found:
        if isinstance(one, Taken) and (name := _name(one.spec)) in taken:
            answers.append(name_taken(one.spec, one.diagnostics))
            continue
        if isinstance(one, Taken):
            taken.add(name)
        answers.append(one)
    return answers


def _name(spec: WorkloadSpec) -> tuple[str, str, str]:
    return spec.namespace, spec.kind, spec.name


def _write(answers: Sequence[Answer], actor: Actor) -> list[Answer]:
    """Write all that is accepted, with its story and its entries in the trail."""
    now, written = clock.now(), list[Answer]()
    rows, pods, trail = list[_Row](), list[_Row](), list[_Row]()
    known: dict[bytes, _Alike] = {}
    for one in answers:
        if not isinstance(one, Taken):
            written.append(one)
            continue
        alike = known.get(one.kind)
        if alike is None:
            alike = _columns(one, actor)
            if one.kind:
                known[one.kind] = alike
        pod_sets, row, parts = alike
        spec = one.spec
        if pod_sets != spec.pod_sets:
            spec = replace(spec, pod_sets=pod_sets)
        uid, own = uuid4(), {"name": spec.name, "template": spec.template}
        rows.append({**row, **own, "uid": uid, "created_at": now + len(rows) * TICK})
        pods += [{**part, "workload_id": uid} for part in parts]
        team, gpus = one.team.name if one.team else "", row["gpus"]
        trail.append(audit.columns(actor.user, *audited(spec, uid, gpus), team=team))
        written.append(replace(one, spec=spec, uid=uid, gpus=gpus))
    if rows:
        _insert(Workload, rows)
        _insert(PodSet, pods)
        told = [(row["uid"], row["created_at"], "submitted") for row in rows]
        persist.insert(WorkloadEvent, ("workload_id", "at", "kind"), told)
        _insert(AuditEntry, trail)
        request_cycle(CHANGED, *(row["uid"] for row in rows))
    return written


_Alike = tuple[tuple[PodSetSpec, ...], _Row, list[_Row]]


def _columns(one: Taken, actor: Actor) -> _Alike:
    """Return pod sets as nodes and queues spell them, and what rows of all like it say."""
    spec = resolved(one.spec, one.world)
    parts = [{"position": i, **pod_set_columns(part)} for i, part in enumerate(spec.pod_sets)]
    return spec.pod_sets, _row(spec, one, actor), parts


def _row(spec: WorkloadSpec, one: Taken, actor: Actor) -> _Row:
    columns = columns_of(spec, actor.user, one.team, one.diagnostics, one.world)
    team, user = columns.pop("team"), columns.pop("submitted_by")
    columns |= {"team_id": team.pk if team else None, "submitted_by_id": user.pk if user else None}
    grace = columns.pop("grace_s", Workload._meta.get_field("grace_s").get_default())  # noqa: SLF001
    return {**columns, "grace_s": grace}


def _insert(model: persist.Model, rows: Sequence[_Row]) -> None:
    persist.insert(model, list(rows[0]), [tuple(row.values()) for row in rows])
