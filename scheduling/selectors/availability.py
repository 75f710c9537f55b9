"""What each queue may take now: of its own, of others', and how large a gang fits anywhere."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuplatform.common import clock
from queues.access import Actor
from scheduling.engine.atlas import Atlas
from scheduling.engine.fragments import fragments
from scheduling.engine.offer import offered
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import FlavorResource
from scheduling.engine.tree import Kind, queue_key
from scheduling.engine.view import QuotaRow, placeable
from scheduling.recent import recent
from scheduling.selectors.quotas import Board, load_board, queue_state

COLUMNS = (
    *("queue", "cohort", "team", "state", "flavor", "resource", "nominal", "used", "borrowed"),
    *("lent", "pending", "in_quota_now", "borrowable_now", "free_on_nodes", "largest_gangs"),
)


Gangs = Mapping[str, Mapping[str, int]]  # pods that fit, by the GPUs of a pod, and by level


def read_availability(actor: Actor) -> list[dict[str, Any]]:
    """Return one row for each column of each queue that the actor sees; canonical units.

    ``in_quota_now`` + ``borrowable_now`` is what quota lets the queue take at once;
    ``free_on_nodes`` is what is free of that flavor on nodes that take pods, for everybody: the
    smaller of the two can start. What is kept for gangs that wait is left out of all of them.
    None where the flavor has no nodes. ``largest_gangs`` says how many pods of 1, 2, ... GPUs
    each fit now on that flavor's nodes, by level, and in what quota lets the queue take.
    """
    board = load_board(actor)
    gangs = {
        (piece.flavor, piece.resource): {
            str(size): dict(by_level) for size, by_level in piece.gangs.items()
        }
        for piece in fragments(replace(board.snapshot, shapes=recent(clock.now())))
    }
    offer = offered(board.snapshot, Atlas(board.snapshot)).soon.ledger
    queues, free = (row for row in board.rows if row.kind is Kind.QUEUE), placeable(board.snapshot)
    return [
        {
            **_cells(board, row, offer, gangs.get((row.flavor, row.resource), {})),
            "free_on_nodes": free.get(FlavorResource(row.flavor, row.resource)),
        }
        for row in queues
    ]


def _cells(board: Board, row: QuotaRow, offer: QuotaLedger, gangs: Gangs) -> dict[str, Any]:
    queue, key = board.queues[row.name], queue_key(row.name)
    fr = FlavorResource(row.flavor, row.resource)
    left = offer.available(key, fr)
    own = max(0, min(row.nominal - offer.used(key, fr), left))
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
        "borrowable_now": max(0, left - own),
        "largest_gangs": _within(gangs, max(0, left)),
    }


def _within(gangs: Gangs, left: int) -> Gangs:
    """Return how many pods fit on nodes, and no more than quota has left for."""
    return {
        size: {level: min(pods, left // int(size)) for level, pods in by_level.items()}
        for size, by_level in gangs.items()
    }
