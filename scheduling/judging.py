"""The world in which new work is judged, kept by the process until something promised changes.

Promises, nodes and who owns them change seldom, and are read for each workload that comes in. All
of them are rows with a version that grows with each edit (``queues.services.writing``), so one
question tells whether anything has changed: how many rows there are of each kind, the sum of their
versions, the newest row and the last edit. Another process' edit, a rolled back one and one that
came back are told apart by that. Source: ``decisions.md`` 7 (cached and versioned).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connection

from gpuplatform.common import clock
from gpuplatform.common.questions import planned_cursor
from queues.models import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    Namespace,
    PriorityClass,
    ResourceFlavor,
    Team,
    Topology,
)
from scheduling.models import Node
from scheduling.world import World

PROMISED = (
    *(Team, Namespace, PriorityClass, Topology, ResourceFlavor, Node),
    *(Cohort, ClusterQueue, LocalQueue),
)
MOST_USES = 2_000  # after which what it has remembered is let go of
Mark = tuple[Any, ...]


class _Kept:
    """What this process keeps; replaced as a whole, so that threads need no lock."""

    def __init__(self, mark: Mark, world: World) -> None:
        self.mark, self.world, self.uses = mark, world, 0


class _Shelf:
    kept: _Kept | None = None


def world_for_judging(read: Callable[[], World]) -> World:
    """Return the world as it stands in the tables, without work; ``read`` reads it anew. 1 query.

    What has changed is asked before anything is read: a world is never older than its mark.
    """
    if not settings.WORLD_KEPT:
        return read()
    mark, kept = _mark(), _Shelf.kept
    if kept is None or kept.mark != mark or kept.uses >= MOST_USES:
        kept = _Shelf.kept = _Kept(mark, read())
    kept.uses += 1
    now = clock.now().timestamp()
    return replace(kept.world, snapshot=replace(kept.world.snapshot, now=now))


def forget() -> None:
    """Keep nothing; the next one reads."""
    _Shelf.kept = None


def _mark() -> Mark:
    with planned_cursor() as cursor:
        cursor.execute(_question())
        return (connection.settings_dict["NAME"], *cursor.fetchall())


@cache
def _question() -> str:
    """Return the question for all tables at once; none of what is in it comes from outside."""
    quoted = connection.ops.quote_name
    parts = (
        f"SELECT {number}, COUNT(*), SUM(version), MAX(id), MAX(updated_at)"  # noqa: S608
        f" FROM {quoted(model._meta.db_table)}"  # noqa: SLF001  # Django's own name for it
        for number, model in enumerate(PROMISED)
    )
    return " UNION ALL ".join(parts) + " ORDER BY 1"
