"""Many moves of workloads from one state to another at once: the same table, a few statements.

The single move, and all rules, stand in :mod:`scheduling.lifecycle`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
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
    """A workload on its way to a state in which it does not wait; see ``lifecycle.transition``."""

    workload: Seen
    to: Status
    at: datetime
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    gpus: int | None = None

    @property
    def event(self) -> str:
        """Return what happens, in the table's words."""
        return lifecycle.event_of(Status(self.workload.status), self.to, self.outcome, "")

    @property
    def columns(self) -> dict[str, Any]:
        """Return what changes in the workload's row."""
        return {
            "version": self.workload.version + 1,
            "status": self.to.value,
            **lifecycle.effects_of(self.workload, self.event, self.to, self.at),
            **({"outcome": self.outcome.value} if self.outcome else {}),
            **({} if self.gpus is None else {"gpus": self.gpus}),
        }


def take(moves: Sequence[Move]) -> set[UUID]:
    """Write many moves, each of them if nothing was faster, and the lines of their stories.

    Returns:
        The workloads that were moved; the others have another version or state by now.
    """
    alike: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for move in moves:
        assert move.to is not Status.PENDING, "who waits again is written by itself"
        seen, columns = move.workload, move.columns
        row = (seen.uid, seen.version, seen.status, *columns.values())
        alike.setdefault(tuple(columns), []).append(row)
    taken: set[UUID] = set()
    for names, rows in alike.items():
        taken |= persist.update(Workload, ("uid", "version", "status"), names, rows)
    told = (move for move in moves if move.workload.uid in taken)
    tell_all(Line(m.workload.uid, m.at, m.event, m.reason, m.facts) for m in told)
    return taken


def follow(row: Workload, move: Move) -> None:
    """Let a row in memory say what the table says after the move was written."""
    for name, value in move.columns.items():
        setattr(row, name, value)


def tell_all(lines: Iterable[Line]) -> None:
    """Write lines of stories that change no state, in their order."""
    columns = ("workload_id", "at", "kind", "reason", "facts", "other_id")
    rows = [(w, at, kind, why, dict(facts), other) for w, at, kind, why, facts, other in lines]
    persist.insert(WorkloadEvent, columns, rows)
