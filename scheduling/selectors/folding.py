"""Long trees on a page: cohorts stay, queues show where somebody looks; files have all rows."""

from collections.abc import Sequence
from dataclasses import replace

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


def _has_below(rows: Sequence[TreeRow], place: int) -> bool:
    return place + 1 < len(rows) and rows[place + 1].level > rows[place].level


def shortened(trees: Sequence[FairTree]) -> list[FairTree]:
    """Return trees with the sisters at their top only, where all of them would be many."""
    sisters = sum(len(one.turns.children) for tree in trees for one in tree.cohorts)
    if sisters <= MOST_SISTERS or len(trees) == 1:
        return list(trees)
    return [replace(tree, cohorts=tree.cohorts[:1], more=len(tree.cohorts) - 1) for tree in trees]
