"""Long trees on a page: cohorts stay, queues show where somebody looks; files have all rows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from scheduling.engine.terms import StopPolicy
from scheduling.selectors.fair_share import FairTree
from scheduling.selectors.quotas import TreeRow

MOST_ROWS = 200  # of a tree that is shown whole; a row costs about a millisecond
MOST_SISTERS = 200


def folded(rows: Sequence[TreeRow], opened: str = "") -> list[TreeRow]:
    """Return the rows of a page: all of a short tree; of a long one no queue but of ``opened``.

    A cohort says how many rows below it are not shown; of the opened one at most ``MOST_ROWS``.
    """
    if len(rows) <= MOST_ROWS:
        return list(rows)
    kept: list[TreeRow] = []
    level, room = 0, MOST_ROWS
    above: list[int] = []  # places in ``kept`` of the cohorts above
    for row in rows:
        level = level if level and row.level > level else 0
        above = [place for place in above if kept[place].level < row.level]
        is_opened = row.kind == "cohort" and row.name == opened
        level = row.level if is_opened else level
        inside = bool(level) and row.level > level
        if row.kind == "cohort" or (inside and room > 0):
            room -= inside
            kept.append(row)
            above += [len(kept) - 1] if row.kind == "cohort" else []
        elif above and row.kind == "queue":
            kept[above[-1]] = replace(kept[above[-1]], folded=kept[above[-1]].folded + 1)
    return [replace(row, has_children=_has_below(kept, place)) for place, row in enumerate(kept)]


def matching(rows: Sequence[TreeRow], text: str = "", only: str = "") -> set[str]:
    """Return the queues of a tree whose name or team holds ``text``, and that are as ``only``."""
    words = text.lower()
    return {
        row.name
        for row in rows
        if row.queue is not None
        and row.kind == "queue"
        and (words in row.name or words in str(row.queue.team or "").lower())
        and _IS.get(only, bool)(row)
    }


def narrowed(rows: Sequence[TreeRow], queues: Collection[str]) -> list[TreeRow]:
    """Return these queues with what leads to them and their doors; sums stay those of all."""
    kept: list[TreeRow] = []
    level = 0  # of the row that was kept last, of those that are read from below upwards
    inside = False
    for row in rows:
        if row.kind == "queue":
            inside = row.name in queues
        if row.kind == "cohort" or inside:
            kept.append(row)
    found: list[TreeRow] = []
    for row in reversed(kept):  # a cohort stays if what was kept below it did
        if row.kind != "cohort" or level > row.level:
            found.append(row)
            level = row.level
    return found[::-1]


def _is_stopped(row: TreeRow) -> bool:
    return row.queue is not None and row.queue.stop_policy != StopPolicy.NONE


_IS: Mapping[str, Callable[[TreeRow], bool]] = {
    "borrowing": lambda row: bool(row.bar and row.bar.borrowed),
    "stopped": _is_stopped,
    "waiting": lambda row: row.live.pending > 0,
}
ONLY = tuple(_IS)


def _has_below(rows: Sequence[TreeRow], place: int) -> bool:
    return place + 1 < len(rows) and rows[place + 1].level > rows[place].level


def shortened(trees: Sequence[FairTree]) -> list[FairTree]:
    """Return trees with the sisters at their top only, where all of them would be many."""
    sisters = sum(len(one.turns.children) for tree in trees for one in tree.cohorts)
    if sisters <= MOST_SISTERS or len(trees) == 1:
        return list(trees)
    return [replace(tree, cohorts=tree.cohorts[:1], more=len(tree.cohorts) - 1) for tree in trees]
