"""What an agent should run and stop, read from the rows; and the agents as people see them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Prefetch, Q
from django.utils.translation import gettext, ngettext

from scheduling.containers import COMMAND, container_of
from scheduling.engine.machines import GPU
from scheduling.models import (
    Admission,
    Agent,
    AgentNode,
    MemberState,
    Node,
    Placement,
    PodSet,
    Workload,
)
from scheduling.models.agents import RELEASED
from scheduling.muster import Lot, MemberName, Muster, Slot, muster

OURS = "gpuplatform.io/"
AGENT_COLUMNS = ("agent", "owner", "state", "heard_at", "epoch", "sequence", "nodes", "members")


# ---- what it should run ------------------------------------------------------------------------
def desired_of(agent: Agent) -> dict[str, Any]:
    """Return what should stand on an agent's nodes, and what should leave them. 6 queries.

    ``run`` names members that have not come to an end, those that run already too; ``stop`` those
    that should be gone and are not known to be. What is in neither should be gone as well.
    """
    own = frozenset(
        AgentNode.objects.filter(agent=agent, name__in=Node.objects.values("name")).values_list(
            "name", flat=True
        )
    )
    yard = _read(own)
    run = [row for admission in yard.standing for row in _to_run(yard, admission, own)]
    return {"agent": agent.name, "epoch": agent.epoch, "run": run, "stop": _to_stop(yard, own)}


@dataclass(frozen=True, slots=True)
class _Yard:
    """Everything that holds one of some nodes, with its whole gang, and what is known of it."""

    admissions: Mapping[int, Admission]
    placements: Mapping[int, Sequence[Placement]]
    latest: Mapping[Slot, MemberState]
    present: Sequence[MemberState]
    known: frozenset[str]  # nodes that there are
    slots: Muster

    @property
    def standing(self) -> list[Admission]:
        """Return the admissions that should stand, in the order in which they were admitted."""
        found = (self.admissions[pk] for pk in self.slots.stand)
        return sorted(found, key=lambda row: (row.admitted_at, row.pk))


def _read(own: frozenset[str]) -> _Yard:
    near = Placement.objects.filter(node__in=own, admission__released_at=None)
    pod_sets = Prefetch("workload__pod_sets", PodSet.objects.order_by("position"))
    rows = Admission.objects.filter(
        released_at=None, is_reserved=False, workload__in=near.values("admission__workload")
    )
    rows = rows.select_related("workload").prefetch_related(pod_sets)
    admissions = {row.pk: row for row in rows}
    placements: defaultdict[int, list[Placement]] = defaultdict(list)
    for placement in Placement.objects.filter(admission__in=admissions).order_by("id"):
        placements[placement.admission_id].append(placement)
    here = Q(node__in=own, gone_at=None)
    states = list(MemberState.objects.filter(Q(admission__in=admissions) | here).order_by("id"))
    away = {row.node for row in states if row.gone_at is None} - own
    known = own | set(Node.objects.filter(name__in=away).values_list("name", flat=True))
    return _Yard(
        admissions=admissions,
        placements=placements,
        latest={row.place: row for row in states},
        present=[row for row in states if row.gone_at is None],
        known=frozenset(known),
        slots=muster(_lots(admissions, placements)),
    )


def _lots(
    admissions: Mapping[int, Admission], placements: Mapping[int, Sequence[Placement]]
) -> Iterable[Lot]:
    wholes = {row.workload_id: row.pk for row in admissions.values() if not row.is_part}
    for row in admissions.values():
        order = {pod_set.name: pod_set.position for pod_set in row.workload.pod_sets.all()}
        placed = sorted(placements[row.pk], key=lambda p: (order.get(p.pod_set, 0), p.pk))
        yield Lot(
            row.pk,
            row.attempt,
            row.evicted_at is not None,
            [(part.pod_set, part.node, part.count) for part in placed],
            wholes.get(row.workload_id) if row.is_part else None,
        )


def _to_run(yard: _Yard, admission: Admission, own: frozenset[str]) -> list[dict[str, Any]]:
    """Return the members of a gang that should stand here, once its last attempt is gone."""
    slots = yard.slots.stand[admission.pk]
    if _has_ghosts(yard, admission):
        return []
    leader = slots[0].member.node if slots else ""
    nodes = list(dict.fromkeys(slot.member.node for slot in slots))
    gang = {"size": len(slots), "leader": leader, "nodes": nodes}
    found = []
    for rank, slot in enumerate(slots):
        row = yard.latest.get(slot)
        if slot.member.node in own and not (row and row.gone_at and row.end != RELEASED):
            placed = next(p for p in yard.placements[admission.pk] if _is_of(p, slot))
            found.append(_member(admission, placed, slot, row) | {"rank": rank, "gang": gang})
    return found


def _is_of(placement: Placement, slot: Slot) -> bool:
    return (placement.pod_set, placement.node) == (slot.member.pod_set, slot.member.node)


def _has_ghosts(yard: _Yard, admission: Admission) -> bool:
    """Return whether members of an earlier attempt still stand on nodes that there are."""
    return any(
        row.admission_id == admission.pk
        and row.attempt < admission.attempt
        and row.node in yard.known
        for row in yard.present
    )


def _member(
    admission: Admission, placed: Placement, slot: Slot, row: MemberState | None
) -> dict[str, Any]:
    workload, member = admission.workload, slot.member
    serial = 1 if row is None else row.serial + (row.end == RELEASED)
    devices = placed.devices[member.slot] if member.slot < len(placed.devices) else None
    return {
        "member": str(MemberName(slot, serial)),
        "workload": _workload(workload),
        "admission": admission.pk,
        "attempt": admission.attempt,
        "pod_set": member.pod_set,
        "node": member.node,
        "slot": member.slot,
        "heard": _heard(row),
        "requests": placed.requests,
        "gpus": int(placed.requests.get(GPU, 0)),
        "devices": devices,
        "grace_s": workload.grace_s,
        "container": container_of(workload.template, member.pod_set),
        "command": workload.annotations.get(COMMAND),
    }


def _workload(workload: Workload) -> dict[str, Any]:
    told = {k: text for k, text in workload.annotations.items() if k.startswith(OURS)}
    names = {"uid": str(workload.uid), "namespace": workload.namespace, "name": workload.name}
    return {**names, "annotations": told}


def _heard(row: MemberState | None) -> str:
    """Return what the platform has heard of a member: "", ``ready`` or ``unready``."""
    if row is None or row.gone_at is not None or row.ready_at is None:
        return ""
    return "unready" if row.unready_since else "ready"


def _to_stop(yard: _Yard, own: frozenset[str]) -> list[dict[str, Any]]:
    """Return the members here that should be gone and are not known to be, in name order."""
    standing = {slot for slots in yard.slots.stand.values() for slot in slots}
    leaving: dict[MemberName, int] = {}
    for pk, slots in yard.slots.leave.items():
        for slot in slots:
            row = yard.latest.get(slot)
            if slot.member.node in own and (row is None or row.gone_at is None):
                serial = row.serial if row else 1
                leaving[MemberName(slot, serial)] = yard.admissions[pk].workload.grace_s
    for row in yard.present:
        name = MemberName(row.place, row.serial)
        if row.node in own and name.slot not in standing and name not in leaving:
            held = yard.admissions.get(row.admission_id)
            leaving[name] = held.workload.grace_s if held else 0
    named = ((str(name), grace) for name, grace in leaving.items())
    return [{"member": name, "grace_s": grace} for name, grace in sorted(named)]


# ---- as people see them ------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent with what it drives. ``members``: those that it has told of and that stand."""

    agent: Agent
    nodes: tuple[str, ...]
    members: int

    @property
    def is_silent(self) -> bool:
        """Return whether nothing was heard of it for too long."""
        return self.agent.silent_since is not None

    @property
    def heard_at(self) -> datetime:
        """Return when something was heard of it last."""
        return self.agent.heard_at

    def as_json(self) -> dict[str, Any]:
        """Return the agent as REST and files show it."""
        return {
            "agent": self.agent.name,
            "owner": self.agent.owner.get_username(),
            "state": "silent" if self.is_silent else "heard",
            "heard_at": self.agent.heard_at.isoformat(),
            "epoch": self.agent.epoch,
            "sequence": self.agent.sequence,
            "version": self.agent.version,
            "nodes": list(self.nodes),
            "members": self.members,
        }


def agent_rows() -> list[AgentRow]:
    """Return all agents by name. 3 queries."""
    agents = Agent.objects.select_related("owner").prefetch_related("nodes").order_by("name")
    counts = MemberState.objects.filter(gone_at=None).values("node").annotate(n=Count("id"))
    members = dict(counts.values_list("node", "n"))
    rows = []
    for agent in agents:
        names = tuple(node.name for node in agent.nodes.all())
        rows.append(AgentRow(agent, names, sum(members.get(name, 0) for name in names)))
    return rows


def agents_sentence(rows: Sequence[AgentRow]) -> str:
    """Say whether all agents are heard of."""
    if not rows:
        return gettext("No agent has said hello yet")
    silent = [row.agent.name for row in rows if row.is_silent]
    if silent:
        words = {"names": ", ".join(silent[:3]), "n": len(silent)}
        told = ngettext("%(names)s is silent", "%(n)d agents are silent: %(names)s", len(silent))
        return told % words
    words = {"n": len(rows)}
    return ngettext("The agent is heard of", "All %(n)d agents are heard of", len(rows)) % words


def agent_cells(rows: Iterable[AgentRow]) -> Iterable[dict[str, Any]]:
    """Yield agents as rows of an export."""
    for row in rows:
        cells = row.as_json() | {"nodes": ", ".join(row.nodes)}
        yield {name: cells[name] for name in AGENT_COLUMNS}
