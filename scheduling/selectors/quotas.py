"""Who is promised what, who holds it: the tree of cohorts and queues from the engine's ledger."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.utils.functional import cached_property

from gpuplatform.common import clock
from gpuplatform.common.bars import QuotaBar
from queues.access import Actor
from queues.models import ClusterQueue, LocalQueue
from scheduling.engine.machines import GPU
from scheduling.engine.snapshot import NOTHING, FlavorResource, Quota, Snapshot, Workload
from scheduling.engine.tree import Kind
from scheduling.engine.usage import is_gpu
from scheduling.engine.view import QuotaRow, quota_rows
from scheduling.faces import Face
from scheduling.loader import load
from scheduling.models import Cycle
from scheduling.selectors.line import Line, waiting_line
from scheduling.selectors.pages import Pages

QUOTA_COLUMNS = (
    "kind",
    "name",
    "parent",
    "team",
    "flavor",
    "resource",
    "nominal",
    "borrowing_limit",
    "lending_limit",
    "fair_weight",
    "ceiling",
    "used",
    "borrowed",
    "lent",
    "idle",
    "pending",
    "available",
)
FIRST = 3  # of a line: the first may never fit
ROW_SCALES = 40  # nominals further apart than this get a scale each


class Live(NamedTuple):
    """How many workloads of a queue wait and hold quota."""

    pending: int = 0
    admitted: int = 0


NOBODY = Live()


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One line of the tree. ``bar`` None: no quota in this column, or not the reader's."""

    kind: str  # cohort | queue | local
    name: str
    level: int
    position: int = 1
    siblings: int = 1
    has_children: bool = False
    queue: ClusterQueue | None = None
    namespace: str = ""
    bar: QuotaBar | None = None
    quota: Quota | None = None
    live: Live = NOBODY
    state: str = ""
    kept: QuotaRow | None = None  # what a cohort keeps for all below it, and lends of that
    folded: int = 0  # queues below it that the page does not show
    is_hidden: bool = False  # of others: named because something of the reader hangs below


@dataclass
class Board:
    """One snapshot and everything the quota pages read from it.

    ``rows`` and ``queues`` are those that the actor may see; the snapshot is whole but for work
    that holds nothing: of that the ``line`` knows how much there is.
    """

    actor: Actor
    snapshot: Snapshot
    queues: Mapping[str, ClusterQueue]
    rows: tuple[QuotaRow, ...]
    local_queues: tuple[LocalQueue, ...] = field(default=())
    line: Line = field(default=Line({}, {}, ()))
    heads: list[Workload] = field(default_factory=list)  # who may be next in each queue
    faces: Mapping[str, Face] = field(default_factory=dict)  # what rows say of who holds something
    cycle: Cycle | None = None  # the last one, and when somebody last looked
    beat: datetime | None = None

    @cached_property
    def pages(self) -> Pages:
        """Return what leads to the pages of queues and cohorts; nothing is read for it."""
        queues = {
            name: row.cohort.name if row.cohort else None for name, row in self.queues.items()
        }
        parents = {name: one.parent for name, one in self.snapshot.cohorts.items()}
        return Pages(self.actor, queues, parents)

    @cached_property
    def live(self) -> Mapping[str, Live]:
        """Return the workloads that wait and that hold quota, by queue."""
        admitted: Counter[str] = Counter()
        for workload in self.snapshot.workloads:
            if workload.admission is not None:  # else it runs, and asks for more
                admitted[workload.queue or ""] += 1
        pending = self.line.workloads
        names = {*pending, *admitted}
        return {name: Live(pending.get(name, 0), admitted[name]) for name in names}

    @cached_property
    def columns(self) -> list[FlavorResource]:
        """Return the columns of the table, GPUs first, then by name."""
        seen = {FlavorResource(row.flavor, row.resource) for row in self.rows}
        return sorted(seen, key=lambda fr: (not is_gpu(fr.resource), fr.flavor, fr.resource))

    def kept_in(self, column: FlavorResource) -> list[QuotaRow]:
        """Return the cohorts' own rows of one column that the reader may see."""
        cohorts = (row for row in self.rows if row.kind is Kind.COHORT)
        return [row for row in cohorts if (row.flavor, row.resource) == tuple(column)]

    @property
    def gpu_rows(self) -> list[QuotaRow]:
        """Return the queues' GPU rows."""
        return [row for row in self.rows if row.kind is Kind.QUEUE and row.resource == GPU]

    def quota(self, row: QuotaRow) -> Quota:
        """Return the limits of a row's queue or cohort."""
        fr = FlavorResource(row.flavor, row.resource)
        if row.kind is Kind.QUEUE:
            return self.snapshot.cluster_queues[row.name].quotas.get(fr, NOTHING)
        cohort = self.snapshot.cohorts.get(row.name)
        return cohort.quotas.get(fr, NOTHING) if cohort else NOTHING


def load_board(actor: Actor, *, past: bool = False) -> Board:
    """Return the board as the actor may see it, in a fixed number of queries.

    ``past``: also what whose turn it is rests on: what queues used of late, and their first.
    """
    held = load(
        clock.now(),
        waiting=False,
        past="noted" if past else "none",
        promised=True,
        first=FIRST if past else 0,
    )
    snapshot, line = held.snapshot, waiting_line(held.snapshot, held.doors)
    known = held.doors.cluster_queues
    queues = {name: row for name, row in known.items() if actor.sees_team(row.team_id)}
    local = [row for row in held.doors.local_queues.values() if row.cluster_queue in queues]
    rows = tuple(
        row
        for row in quota_rows(snapshot, line.demand)
        if (row.name in queues if row.kind is Kind.QUEUE else actor.sees_everything)
    )
    return Board(
        actor=actor,
        snapshot=snapshot,
        queues=queues,
        rows=rows,
        local_queues=tuple(local),
        line=line,
        heads=held.heads,
        faces=held.faces,
        cycle=held.cycle,
        beat=held.beat,
    )


# ---- bars --------------------------------------------------------------------------------------


def bar_of(row: QuotaRow, label: str = "") -> QuotaBar:
    """Return the bar of one row; a queue's loans stand beside its own use."""
    return QuotaBar(
        label=label or row.name,
        nominal=row.nominal,
        used=row.used,
        borrowed=min(row.borrowed, row.used),
        lent=row.lent,
        pending=row.pending,
        ceiling=row.ceiling,
        resource=row.resource,
        alone=row.kind is Kind.QUEUE and row.parent is None,
    )


def on_one_scale(bars: Iterable[QuotaBar]) -> list[QuotaBar]:
    """Return sister bars on one scale, or one scale a row where that would hide the small ones."""
    bars = list(bars)
    nominals = [bar.nominal for bar in bars if bar.nominal]
    if nominals and max(nominals) > ROW_SCALES * min(nominals):
        return bars
    scale = max((bar.reach for bar in bars), default=1)
    return [replace(bar, scale=scale) for bar in bars]


def queue_bars(board: Board, queue: str) -> list[QuotaBar]:
    """Return the bars of one queue, one for each column, GPUs first."""
    rows = sorted(
        (row for row in board.rows if row.kind is Kind.QUEUE and row.name == queue),
        key=lambda row: (not is_gpu(row.resource), row.flavor, row.resource),
    )
    return [bar_of(row, row.flavor) for row in rows]


def choose_column(board: Board, flavor: str, resource: str) -> FlavorResource | None:
    """Return the column that was asked for, else the GPUs promised most of; None without quota."""
    resource = resource or GPU
    asked = [c for c in board.columns if c.flavor == flavor and (c.resource == resource)]
    if asked:
        return asked[0]
    sums: Counter[FlavorResource] = Counter()
    for row in board.rows:
        if row.kind is Kind.QUEUE and row.resource == resource:
            sums[FlavorResource(row.flavor, row.resource)] += row.nominal
    if sums:
        return max(sorted(sums), key=lambda column: sums[column])
    return next(iter(board.columns), None)


# ---- the tree ----------------------------------------------------------------------------------


def tree_rows(board: Board, column: FlavorResource) -> list[TreeRow]:
    """Return cohorts, queues and local queues in tree order with the bars of one column."""
    return _Tree(board, column).rows()


class _Tree:
    """Walks the cohort tree once; scales are shared by the queues, and by cohorts of a level."""

    def __init__(self, board: Board, column: FlavorResource) -> None:
        self.board, self.column = board, column
        self.cohorts: dict[str | None, list[str]] = {}
        self.members: dict[str | None, list[str]] = {}
        for cohort in board.snapshot.cohorts.values():
            self.cohorts.setdefault(cohort.parent, []).append(cohort.name)
        for name in board.queues:
            parent = board.snapshot.cluster_queues[name].cohort
            self.members.setdefault(parent, []).append(name)
        self.doors: dict[str, list[LocalQueue]] = {}
        for local in board.local_queues:
            self.doors.setdefault(local.cluster_queue, []).append(local)
        self.row = {
            (row.kind, row.name): row
            for row in board.rows
            if (row.flavor, row.resource) == tuple(column)
        }
        queues = [row for (kind, _name), row in self.row.items() if kind is Kind.QUEUE]
        bars = on_one_scale(bar_of(row) for row in queues)
        self.queue_bar = {row.name: bar for row, bar in zip(queues, bars, strict=True)}

    def rows(self) -> list[TreeRow]:
        """Return the whole tree; roots first by name, queues without cohort last."""
        tops = [name for name in sorted(self.cohorts.get(None, [])) if self._shown(name)]
        alone = sorted(self.members.get(None, []))
        found: list[TreeRow] = []
        size = len(tops) + len(alone)
        for position, name in enumerate(tops, start=1):
            found += self._cohort(name, 1, position, size)
        for position, name in enumerate(alone, start=len(tops) + 1):
            found += self._queue(name, 1, position, size)
        return found

    def _shown(self, cohort: str) -> bool:
        """Return whether the reader sees the cohort: everything, or the way to something own."""
        if self.board.actor.sees_everything or self.members.get(cohort):
            return True
        return any(self._shown(child) for child in self.cohorts.get(cohort, []))

    def _cohort(self, name: str, level: int, position: int, size: int) -> list[TreeRow]:
        children = [child for child in sorted(self.cohorts.get(name, [])) if self._shown(child)]
        queues = sorted(self.members.get(name, []))
        below: list[TreeRow] = []
        count = len(children) + len(queues)
        for place, child in enumerate(children, start=1):
            below += self._cohort(child, level + 1, place, count)
        for place, queue in enumerate(queues, start=len(children) + 1):
            below += self._queue(queue, level + 1, place, count)
        row = self.row.get((Kind.COHORT, name))
        direct = [line for line in below if line.kind == "queue"]
        head = TreeRow(
            "cohort",
            name,
            level,
            position,
            size,
            has_children=bool(below),
            bar=cohort_bar(row, self.row, self._inside(name)) if row else None,
            quota=self.board.quota(row) if row and row.parent else None,
            kept=row if row and row.nominal else None,
            live=Live(*(sum(counts) for counts in zip(*(q.live for q in direct), strict=True)))
            if direct
            else Live(),
            state="" if below else "empty",
            is_hidden=not self.board.actor.sees_everything,
        )
        return [head, *below]

    def _inside(self, cohort: str) -> set[tuple[Kind, str]]:
        """Return the keys of everything below a cohort, and its own."""
        inside = {(Kind.COHORT, cohort)} | {(Kind.QUEUE, q) for q in self.members.get(cohort, [])}
        for child in self.cohorts.get(cohort, []):
            inside |= self._inside(child)
        return inside

    def _queue(self, name: str, level: int, position: int, size: int) -> list[TreeRow]:
        doors = self.doors.get(name, [])
        row = self.row.get((Kind.QUEUE, name))
        head = TreeRow(
            "queue",
            name,
            level,
            position,
            size,
            has_children=bool(doors),
            queue=self.board.queues[name],
            bar=self.queue_bar.get(name),
            quota=self.board.quota(row) if row else None,
            live=self.board.live.get(name, Live()),
            state=queue_state(self.board, name),
        )
        below = [
            TreeRow("local", door.name, level + 1, place, len(doors), namespace=door.namespace)
            for place, door in enumerate(doors, start=1)
        ]
        return [head, *below]


def cohort_bar(
    row: QuotaRow,
    rows: Mapping[tuple[Kind, str], QuotaRow],
    inside: Iterable[tuple[Kind, str]],
) -> QuotaBar:
    """Return a cohort's roll-up: the promises of all below it and its own, and what they use."""
    nominal = sum(rows[key].nominal for key in inside if key in rows)
    return replace(
        bar_of(row), nominal=nominal, lent=0, ceiling=row.ceiling and max(row.ceiling, nominal)
    )


def queue_state(board: Board, name: str) -> str:
    """Return ``active``, a stop policy, or the code of why the queue cannot admit."""
    queue = board.snapshot.cluster_queues[name]
    if queue.inactive:
        return queue.inactive
    return "active" if queue.stop_policy == "None" else str(queue.stop_policy)


def quota_cells(board: Board, flavor: str = "", resource: str = "") -> Iterable[dict[str, Any]]:
    """Yield the rows of an export, in canonical units; "" does not filter."""
    for row in board.rows:
        if (flavor and row.flavor != flavor) or (resource and row.resource != resource):
            continue
        limits, queue = board.quota(row), board.queues.get(row.name)
        shown = {name: getattr(row, name, None) for name in QUOTA_COLUMNS}
        yield shown | {
            "kind": row.kind.value,
            "team": queue.team.name if queue and queue.team and row.kind is Kind.QUEUE else "",
            "borrowing_limit": limits.borrowing_limit,
            "lending_limit": limits.lending_limit,
            "fair_weight": _weight(board, row),
        }


def _weight(board: Board, row: QuotaRow) -> float:
    """Return the fair weight; 1 for a cohort that is only named."""
    if row.kind is Kind.QUEUE:
        return board.snapshot.cluster_queues[row.name].fair_weight
    cohort = board.snapshot.cohorts.get(row.name)
    return cohort.fair_weight if cohort else 1.0
