"""What each queue may take now: of its own, of others', and how large a gang fits anywhere."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuplatform.common import clock
from queues.access import Actor
from scheduling.engine.fragments import fragments
from scheduling.engine.snapshot import FlavorResource
from scheduling.engine.tree import Kind
from scheduling.engine.view import QuotaRow, placeable
from scheduling.recent import recent
from scheduling.selectors.quotas import Board, load_board, queue_state

COLUMNS = (
    *("queue", "cohort", "team", "state", "flavor", "resource", "nominal", "used", "borrowed"),
    *("lent", "pending", "in_quota_now", "borrowable_now", "free_on_nodes", "largest_gangs"),
)


def read_availability(actor: Actor) -> list[dict[str, Any]]:
    """Return one row for each column of each queue that the actor sees; canonical units.

    ``in_quota_now`` + ``borrowable_now`` is what quota lets the queue take at once;
    ``free_on_nodes`` is what is free of that flavor on nodes that take pods, for everybody: the
    smaller of the two can start. None where the flavor has no nodes. ``largest_gangs`` says how
    many pods of 1, 2, ... GPUs each fit now on that flavor's nodes, by level: of everybody's
    free GPUs, whatever the quota is.
    """
    board = load_board(actor)
    gangs = {
        (piece.flavor, piece.resource): {
            str(size): dict(by_level) for size, by_level in piece.gangs.items()
        }
        for piece in fragments(replace(board.snapshot, shapes=recent(clock.now())))
    }
    queues, free = (row for row in board.rows if row.kind is Kind.QUEUE), placeable(board.snapshot)
    return [
        {
            **_cells(board, row, gangs.get((row.flavor, row.resource), {})),
            "free_on_nodes": free.get(FlavorResource(row.flavor, row.resource)),
        }
        for row in queues
    ]


def _cells(board: Board, row: QuotaRow, gangs: Mapping[str, Any]) -> dict[str, Any]:
    queue = board.queues[row.name]
    own = max(0, min(row.nominal - row.used, row.available))
    return {
        "queue": row.name,
        "cohort": row.parent,
        "team": queue.team.name if queue.team else None,
        "state": queue_state(board, row.name),
        "flavor": row.flavor,
        "resource": row.resource,
        "nominal": row.nominal,
        "used": row.used,
        "borrowed": row.borrowed,
        "lent": row.lent,
        "pending": row.pending,
        "in_quota_now": own,
        "borrowable_now": max(0, row.available - own),
        "largest_gangs": gangs,
    }
