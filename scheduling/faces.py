"""What a writer must know of live work beside what the engine sees: its row, and what it holds."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from scheduling import models as rows
from scheduling.engine.terms import Status
from scheduling.jsontexts import as_text, read_json
from scheduling.moves import Move

NO_GROWTH = "{}"


class Held(NamedTuple):
    """An admission that is open: quota and nodes are held on its strength."""

    pk: int
    workload_id: UUID
    cluster_queue: str
    admitted_at: datetime
    started_at: datetime | None
    evicted_at: datetime | None
    is_part: bool
    namespace: str
    team_id: int | None


@dataclass(slots=True)
class Face:
    """What a writer must know of a workload beside what the engine sees.

    ``told``: why it waits, as its row says it: reason, blockers as JSON text, position.
    ``growth``: the same of a running one that asks for more pods, as JSON text.
    """

    uid: UUID
    name: str
    version: int
    status: str
    team_id: int | None
    gpus: int
    told: tuple[str, str, int | None]
    growth: str = NO_GROWTH
    resized_at: datetime | None = None
    admitted_at: datetime | None = None
    executed_s: float = 0.0

    def __str__(self) -> str:
        return self.name

    @property
    def grows(self) -> dict[str, Any]:
        """Return why it waits for more pods, as its row says it."""
        return dict(read_json(self.growth))

    def follow(self, move: Move) -> None:
        """Say what the row says after a move of the workload was written."""
        self.version, self.status = self.version + 1, move.to.value
        self.gpus = self.gpus if move.gpus is None else move.gpus
        self.admitted_at = move.at if move.to is Status.ADMITTED else self.admitted_at

    def wait(self, move: Move) -> None:
        """Say what the row says after a move was written with which it waits (again)."""
        said = move.columns
        self.told = said["pending_reason"], as_text(said["blockers"]), None
        self.executed_s = said.get("executed_s", self.executed_s)
        self.admitted_at = said.get("admitted_at", self.admitted_at)
        self.growth = NO_GROWTH if "growth" in said else self.growth
        self.version, self.gpus, self.status = said["version"], said["gpus"], move.to.value

    def follow_row(self, row: rows.Workload) -> None:
        """Say what the row says after it was written by itself."""
        self.version, self.status, self.gpus = row.version, row.status, row.gpus
        self.told = row.pending_reason, as_text(row.blockers), row.position
        self.growth = as_text(row.growth)
        self.admitted_at, self.executed_s = row.admitted_at, row.executed_s

    def holds(self, pk: int, queue: str, at: datetime) -> Held:
        """Return the admission that it holds from now on."""
        namespace = self.name.partition("/")[0]
        return Held(pk, self.uid, queue, at, None, None, False, namespace, self.team_id)
