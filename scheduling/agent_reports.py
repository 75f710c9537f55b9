"""What agents tell becomes rows: their nodes, and what became of members.

Reports are numbered in each epoch. A number that has been taken changes nothing, one that is
missing is told; a batch is taken whole or not at all. A report about what nobody waits for any
more (an earlier attempt, an admission that has ended) is taken and ignored.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import transaction

from gpuplatform.common import clock
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.problems import Rejected
from gpuplatform.common.wakeup import request_cycle
from queues.models import User
from scheduling.agents import not_found, note_alive, own_agent
from scheduling.models import Admission, Agent, AgentNode, MemberState, Node, Placement
from scheduling.models.agents import RELEASED
from scheduling.muster import MemberName, Slot
from scheduling.services import delete_node, save_node
from scheduling.specs import NodeSpec

MOST_REPORTS = 500  # in one call


class Told(StrEnum):
    """What a report says."""

    NODE = "node"
    NODE_GONE = "node_gone"
    READY = "ready"
    UNREADY = "unready"
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"
    RELEASED = RELEASED
    CHECKPOINT = "checkpoint"


ENDS = frozenset({Told.FINISHED, Told.FAILED, Told.LOST, Told.RELEASED})


@dataclass(frozen=True, slots=True)
class Report:
    """One thing that an agent tells. ``at`` None: now.

    ``node`` with NODE (its ``schedulable`` None: as the platform has it), ``name`` with
    NODE_GONE, ``member`` with all others.
    """

    sequence: int
    told: Told
    at: datetime | None = None
    member: MemberName | None = None
    node: NodeSpec | None = None
    keeps_cordon: bool = True
    name: str = ""
    exit_code: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a batch. ``sequence``: the last number taken, now."""

    sequence: int
    taken: int = 0
    repeated: int = 0
    ignored: int = 0


@transaction.atomic
def take_reports(name: str, epoch: int, reports: Sequence[Report], *, actor: User) -> Receipt:
    """Take a batch of reports, whole or not at all; an empty one says that the agent lives.

    Raises:
        Rejected: ``not_found`` (the agent, or a node of another one), ``STALE_EPOCH``,
            ``SEQUENCE_GAP`` with the number that is expected, or what is wrong with a node.
    """
    agent = own_agent(name, epoch, actor=actor, lock=True)
    fresh = _unknown(agent, reports)
    known, ignored = _Known(agent, fresh), 0
    for position, report in fresh:
        if not _take(agent, report, known, f"reports[{position}]", actor):
            ignored += 1
    if fresh:
        agent.sequence = fresh[-1][1].sequence
        agent.save(update_fields=["sequence"])
        known.save()
    note_alive(agent)
    if any(report.told not in (Told.NODE, Told.NODE_GONE) for _position, report in fresh):
        request_cycle("agent", name)
    repeated = len(reports) - len(fresh)
    return Receipt(agent.sequence, len(fresh) - ignored, repeated, ignored)


def _unknown(agent: Agent, reports: Sequence[Report]) -> list[tuple[int, Report]]:
    """Return the reports that are new, each with its position; they follow on the last one."""
    fresh = [(n, report) for n, report in enumerate(reports) if report.sequence > agent.sequence]
    for expected, (position, report) in enumerate(fresh, agent.sequence + 1):
        if report.sequence != expected:
            numbers = {"expected": expected, "found": report.sequence}
            path = f"reports[{position}].sequence"
            found = Diagnostic("SEQUENCE_GAP", f"Agent/{agent.name}", path, numbers)
            raise Rejected([found.as_problem()])
    return fresh


def _take(agent: Agent, report: Report, known: "_Known", path: str, actor: User) -> bool:
    """Let one report be true; returns whether it told anything."""
    match report.told:
        case Told.NODE:
            assert report.node is not None
            return _take_node(agent, report, known, path, actor)
        case Told.NODE_GONE:
            return _take_node_gone(agent, report, known, path, actor)
        case _:
            return known.note(report, path)


def _take_node(agent: Agent, report: Report, known: "_Known", path: str, actor: User) -> bool:
    spec = report.node
    assert spec is not None
    known.refuse_foreign(spec.name, f"{path}.node.name")
    row = Node.objects.filter(name=spec.name).first()
    if row is not None and report.keeps_cordon:
        spec = replace(spec, schedulable=row.schedulable)
    try:
        save_node(spec, actor=actor)
    except Rejected as error:
        found = [replace(p, path=f"{path}.node.{p.path}") for p in error.problems]
        raise Rejected(found) from error
    AgentNode.objects.update_or_create(
        name=spec.name, defaults={"agent": agent, "ready": spec.ready}
    )
    known.owners[spec.name] = agent.pk
    return True


def _take_node_gone(agent: Agent, report: Report, known: "_Known", path: str, actor: User) -> bool:
    known.refuse_foreign(report.name, f"{path}.name")
    if not AgentNode.objects.filter(agent=agent, name=report.name).delete()[0]:
        return False
    known.owners.pop(report.name, None)
    if Node.objects.filter(name=report.name).exists():
        delete_node(report.name, actor=actor, reason="its agent took it back")
    return True


class _Known:
    """What a batch of reports is judged by, read once; changed members, written once."""

    def __init__(self, agent: Agent, reports: Iterable[tuple[int, Report]]) -> None:
        named = [report.member for _n, report in reports if report.member is not None]
        told = [report for _n, report in reports]
        nodes = {name.slot.member.node for name in named} | {report.name for report in told}
        nodes |= {report.node.name for report in told if report.node is not None}
        self.owners: dict[str, int] = dict(
            AgentNode.objects.filter(name__in=nodes).values_list("name", "agent_id")
        )
        self._agent = agent
        self._now = clock.now()
        admissions = {name.slot.admission for name in named}
        self._admissions = Admission.objects.in_bulk(admissions)
        self._room = self._read_room()
        self._states: dict[Slot, MemberState] = {}
        self._changed: dict[MemberName, MemberState] = {}
        rows = MemberState.objects.filter(admission__in=admissions, node__in=nodes)
        for row in rows.order_by("id"):
            self._states[row.place] = row

    def _read_room(self) -> Mapping[tuple[Any, str, str], int]:
        """Return how many pods of a workload's pod set stand on a node, those leaving too."""
        room: Counter[tuple[Any, str, str]] = Counter()
        workloads = {row.workload_id for row in self._admissions.values()}
        placed = Placement.objects.filter(
            admission__workload__in=workloads, admission__released_at=None
        )
        for uid, pod_set, node, count in placed.values_list(
            "admission__workload", "pod_set", "node", "count"
        ):
            room[uid, pod_set, node] += count
        return room

    def refuse_foreign(self, node: str, path: str) -> None:
        """Refuse what is said about a node of another agent: it is not there."""
        if self.owners.get(node, self._agent.pk) != self._agent.pk:
            raise Rejected([not_found(path)])

    def note(self, report: Report, path: str) -> bool:
        """Note what became of a member; returns whether anybody waits for it."""
        name = report.member
        assert name is not None
        self.refuse_foreign(name.slot.member.node, f"{path}.member")
        if name.slot.member.node not in self.owners:
            return False
        row = self._row(name)
        if row is None or not _tell(row, report, self._instant(report, row)):
            return False
        self._states[name.slot] = self._changed[name] = row
        return True

    def _row(self, name: MemberName) -> MemberState | None:
        """Return the member's row, or a new one where the member is wanted."""
        row = self._states.get(name.slot)
        if row is not None and row.serial == name.serial:
            return row
        serial = 1 if row is None else row.serial + (row.end == RELEASED)
        if name.serial != serial or (row is not None and row.serial == serial):
            return None
        return self._new_row(name) if self._is_wanted(name.slot) else None

    def _is_wanted(self, slot: Slot) -> bool:
        admission = self._admissions.get(slot.admission)
        if admission is None or admission.released_at or slot.attempt > admission.attempt:
            return False
        key = admission.workload_id, slot.member.pod_set, slot.member.node
        return slot.member.slot < self._room.get(key, 0)

    def _new_row(self, name: MemberName) -> MemberState:
        slot = name.slot
        return MemberState(
            admission=self._admissions[slot.admission],
            attempt=slot.attempt,
            pod_set=slot.member.pod_set,
            node=slot.member.node,
            slot=slot.member.slot,
            serial=name.serial,
        )

    def _instant(self, report: Report, row: MemberState) -> datetime:
        """Return when it happened: not before the member could start, and not in the future."""
        admission = self._admissions[row.admission_id]
        since = admission.admitted_at
        if row.attempt == admission.attempt and admission.begun_at is not None:
            since = admission.begun_at
        return max(since, min(report.at or self._now, self._now))

    def save(self) -> None:
        """Write the members that have changed."""
        for row in self._changed.values():
            row.save()


def _tell(row: MemberState, report: Report, at: datetime) -> bool:
    """Change what is known of a member; returns whether it changed."""
    if report.told is Told.CHECKPOINT:
        later = row.checkpoint_at is None or at > row.checkpoint_at
        row.checkpoint_at = at if later else row.checkpoint_at
        return later
    if row.gone_at is not None:
        return False
    match report.told:
        case Told.READY:
            changed = row.ready_at is None or row.unready_since is not None
            row.ready_at, row.unready_since = row.ready_at or at, None
            return changed
        case Told.UNREADY:
            changed = row.ready_at is not None and row.unready_since is None
            row.unready_since = at if changed else row.unready_since
            return changed
        case _:
            row.gone_at, row.end = at, report.told.value
            row.exit_code, row.why = report.exit_code, report.why[:64]
            if report.told is Told.FINISHED and row.ready_at is None:
                row.ready_at = at
            return True
