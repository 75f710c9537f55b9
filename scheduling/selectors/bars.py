"""Who holds what of each GPU flavor, as bars: the largest queues, and how many more there are."""

from typing import NamedTuple

from gpuplatform.common.bars import QuotaBar
from queues.models import ClusterQueue
from scheduling.engine.machines import GPU
from scheduling.engine.tree import Kind
from scheduling.engine.view import QuotaRow
from scheduling.selectors.quotas import Board, bar_of, on_one_scale

MOST_BARS = 40  # of a flavor on one page; who wants all of them has the table of queues


class FlavorBars(NamedTuple):
    """The queues that have quota of one flavor's GPUs."""

    flavor: str
    used: int
    nominal: int
    bars: list[tuple[ClusterQueue, QuotaBar]]
    cohorts: list[tuple[str, int]]  # what cohorts keep for all below them
    more: int = 0  # queues that are counted and not drawn


def bars_by_flavor(board: Board) -> list[FlavorBars]:
    """Return who holds what of each GPU flavor, largest queue first, ``MOST_BARS`` of them."""
    by_flavor: dict[str, list[QuotaRow]] = {}
    for row in board.gpu_rows:
        if row.nominal or row.used or row.pending:
            by_flavor.setdefault(row.flavor, []).append(row)
    found = []
    for flavor, rows in sorted(by_flavor.items(), key=lambda i: -sum(r.nominal for r in i[1])):
        rows.sort(key=lambda row: (-row.nominal, row.name))
        drawn = rows[:MOST_BARS]
        bars = on_one_scale(bar_of(row, _label(board.queues[row.name])) for row in drawn)
        pairs = [(board.queues[row.name], bar) for row, bar in zip(drawn, bars, strict=True)]
        used, nominal = sum(r.used for r in rows), sum(r.nominal for r in rows)
        kept, more = _kept_by_cohorts(board, flavor), len(rows) - len(drawn)
        found.append(FlavorBars(flavor, used, nominal, pairs, kept, more))
    return found


def _kept_by_cohorts(board: Board, flavor: str) -> list[tuple[str, int]]:
    return [
        (row.name, row.nominal)
        for row in board.rows
        if row.kind is Kind.COHORT and row.nominal and (row.flavor, row.resource) == (flavor, GPU)
    ]


def _label(queue: ClusterQueue) -> str:
    return str(queue.team) if queue.team else queue.name
