"""Many moves of workloads from one state to another at once: the same table, a few statements.

The single move, and all rules, stand in :mod:`scheduling.lifecycle`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from scheduling import lifecycle, persist
from scheduling.engine.terms import Outcome, Status
from scheduling.models import Workload, WorkloadEvent


class Line(NamedTuple):
    """One line of a workload's story; ``other``: the preemptor of a victim, or its victim."""

    workload: UUID
    at: datetime
    kind: str
    reason: str = ""
    facts: Mapping[str, Any] = {}
    other: UUID | None = None


class Seen(lifecycle.Moved, Protocol):
    """A workload as its decider saw it."""

    uid: UUID
    version: int


@dataclass(frozen=True, slots=True)
class Move:
    """A workload on its way to another state; the fields are those of ``lifecycle.transition``.

    What else follows where it waits again (the size of its pod sets) its caller writes.
    """

    workload: Seen
    to: Status
    at: datetime
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    gpus: int | None = None
    event_name: str = ""
    other: UUID | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def event(self) -> str:
        """Return what happens, in the table's words."""
        return _event(self.workload.status, self.to, self.outcome, self.event_name)

    @property
    def columns(self) -> dict[str, Any]:
        """Return what changes in the workload's row."""
        return {
            "version": self.workload.version + 1,
            "status": self.to.value,
            **lifecycle.effects_of(self.workload, self.event, self.to, self.at),
            **({"outcome": self.outcome.value} if self.outcome else {}),
            **({} if self.gpus is None else {"gpus": self.gpus}),
            **self.more,
        }


def take(moves: Sequence[Move]) -> set[UUID]:
    """Write many moves, each of them if nothing was faster, and the lines of their stories.

    Returns:
        The workloads that were moved; the others have another version or state by now.
    """
    alike: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    known: dict[tuple[object, ...], Mapping[str, Any]] = {}
    for move in moves:
        seen, columns = move.workload, _columns(move, known)
        row = (seen.uid, seen.version, seen.status, *columns.values())
        alike.setdefault(tuple(columns), []).append(row)
    taken: set[UUID] = set()
    for names, rows in alike.items():
        taken |= persist.update(Workload, ("uid", "version", "status"), names, rows)
    told = (move for move in moves if move.workload.uid in taken)
    tell_all(Line(m.workload.uid, m.at, m.event, m.reason, m.facts, m.other) for m in told)
    return taken


def _columns(move: Move, known: dict[tuple[object, ...], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return what changes in a row; but for its size, that is the same for all that move alike.

    Who waits or rests from now on may differ in what its run so far leaves behind.
    """
    if move.to in {Status.PENDING, Status.INACTIVE}:
        return move.columns
    kind = (move.workload.status, move.to, move.at, move.outcome, move.event_name)
    shared = known.get(kind)
    if shared is None:
        shared = known[kind] = replace(move, gpus=None, more={}).columns
    own: dict[str, Any] = {"version": move.workload.version + 1}
    own |= {} if move.gpus is None else {"gpus": move.gpus}
    return {**shared, **own, **move.more}


@cache
def _event(current: str, to: Status, outcome: Outcome | None, name: str) -> str:
    return lifecycle.event_of(Status(current), to, outcome, name)


def tell_all(lines: Iterable[Line]) -> None:
    """Write lines of stories that change no state, in their order."""
    columns = ("workload_id", "at", "kind", "reason", "facts", "other_id")
    persist.insert(WorkloadEvent, columns, list(lines))
