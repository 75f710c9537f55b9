"""The GPUs of one node, one by one, and who stands on each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from queues.access import Actor
from queues.models import Team
from scheduling.devices import devices_of
from scheduling.engine.machines import Devices
from scheduling.engine.scoring.devices import Ask, Spare, spare_of
from scheduling.engine.usage import requested_devices
from scheduling.models import Node, Placement

_ISLANDS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Holder:
    """Pods of one workload on a device. ``workload`` None: the reader may not see it."""

    workload: Any
    team: Team | None
    pods: int = 1


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One GPU: its number, its island, who is on it, what is left in per cent and in MiB.

    ``island`` is a letter, "" where none is declared; ``memory`` and ``free_memory`` are 0 where
    nobody says how much there is.
    """

    number: int
    island: str
    holders: tuple[Holder, ...]
    free: int
    memory: int
    free_memory: int


def device_rows(actor: Actor, node: Node) -> list[DeviceRow]:
    """Return the GPUs of a node that tells them apart; none for any other. At most 2 queries."""
    facts = devices_of(node.labels, node.annotations, node.allocatable)
    if facts is None:
        return []
    placed = Placement.objects.filter(node=node.name, admission__released_at=None)
    placed = placed.select_related("admission__workload__team").order_by("admission_id", "id")
    placed = placed.prefetch_related("admission__workload__pod_sets")
    spare, holders = spare_of(facts), dict[int, dict[Any, Holder]]()
    for row in placed:
        ask, workload = _asked(row), row.admission.workload
        seen = actor.sees_everything or actor.sees_team(workload.team_id)
        for seat in row.devices:
            spare = spare.less(ask, seat)
            for device in seat:
                on, key = holders.setdefault(device, {}), workload.pk if seen else None
                pods = on[key].pods + 1 if key in on else 1
                shown = workload if seen else None
                on[key] = Holder(shown, workload.team if seen else None, pods)
    return [_row(facts, spare, number, holders.get(number, {})) for number in range(facts.count)]


def _asked(row: Placement) -> Ask:
    """Return what one of these pods takes of each of its devices."""
    pod_sets = row.admission.workload.pod_sets.all()
    memory = next((p.device_memory_mib for p in pod_sets if p.name == row.pod_set), 0)
    asked = requested_devices(row.requests, memory=memory)
    if asked is None:
        return Ask(0)
    return Ask(asked.count, asked.share, asked.memory, alone=asked.alone)


def _row(facts: Devices, spare: Spare, number: int, on: dict[Any, Holder]) -> DeviceRow:
    islands = [i for i, island in enumerate(spare.layout.islands) if number in island]
    return DeviceRow(
        number,
        _ISLANDS[islands[0] % len(_ISLANDS)] if islands else "",
        tuple(on.values()),
        max(0, spare.free[number]) * 100 // spare.layout.full,
        facts.memory or 0,
        max(0, spare.memory[number]) if spare.memory else 0,
    )


def numbers_of(seats: Iterable[Iterable[int]]) -> str:
    """Return the devices of several pods in short: ``0-3; 4-7``, ``0 x3; 1``."""
    counts: dict[str, int] = {}
    for seat in seats:
        text = _spans(sorted(seat))
        counts[text] = counts.get(text, 0) + 1
    return "; ".join(f"{text} x{n}" if n > 1 else text for text, n in counts.items() if text)


def _spans(devices: list[int]) -> str:
    spans: list[list[int]] = []
    for device in devices:
        if spans and spans[-1][-1] == device - 1:
            spans[-1].append(device)
        else:
            spans.append([device])
    return ", ".join(str(s[0]) if len(s) == 1 else f"{s[0]}-{s[-1]}" for s in spans)
