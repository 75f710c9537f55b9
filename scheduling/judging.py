"""The world in which new work is judged, kept by the process until something promised changes.

Promises, nodes and who owns them change seldom, and are read for each workload that comes in.
Whether they have changed is asked first (:mod:`scheduling.marks`), by one question.
"""

from collections.abc import Callable
from dataclasses import replace

from django.conf import settings

from gpuplatform.common import clock
from scheduling.marks import Mark, promised_mark
from scheduling.world import World

MOST_USES = 2_000  # after which what it has remembered is let go of


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
    mark, kept = promised_mark(), _Shelf.kept
    if kept is None or kept.mark != mark or kept.uses >= MOST_USES:
        kept = _Shelf.kept = _Kept(mark, read())
    kept.uses += 1
    now = clock.now().timestamp()
    return replace(kept.world, snapshot=replace(kept.world.snapshot, now=now))


def forget() -> None:
    """Keep nothing; the next one reads."""
    _Shelf.kept = None
