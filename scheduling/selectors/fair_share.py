"""Fair sharing of the whole platform: every tree, its cohorts, and whose turn it is in each.

The figures are the engine's own (:mod:`fairness`); page, file and REST show the same ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from gpuplatform.common.locales import by_locale
from queues.access import Actor
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.terms import Fairness
from scheduling.engine.tree import cohort_key
from scheduling.selectors.fairness import Child, Turns, View
from scheduling.selectors.fairness import turns as turns_of
from scheduling.selectors.quotas import Board, load_board

FAIR_COLUMNS = (
    *("tree", "fairness", "half_life_days", "cohort", "name", "kind", "turn", "waiting"),
    *("weight", "weight_percent", "promised_gpus", "held_gpus", "borrows"),
    *("gpu_hours_of_late", "gpu_hours_per_gpu_and_weight", "share_percent", "would_borrow"),
)


@dataclass(frozen=True, slots=True)
class FairCohort:
    """Sisters in one cohort of a tree; ``level`` 1 is the top."""

    name: str
    level: int
    turns: Turns

    @property
    def against(self) -> str:
        """Return what the first is compared with: the figures of the first two that wait."""
        line = [child for child in self.turns.children if child.turn]
        if len(line) < 2 or line[0].turn != 1:  # noqa: PLR2004 - two to compare
            return ""
        first, second = line[:2]
        if first.would_borrow != second.would_borrow:
            words = gettext("%(second)s comes after: it would have to borrow.")
            return words % {"second": second.name}
        told = [_figure(child, by_history=self.turns.by_history) for child in (first, second)]
        words = gettext("%(first)s %(a)s, %(second)s %(b)s.")
        return words % {"first": first.name, "a": told[0], "second": second.name, "b": told[1]}


@dataclass(frozen=True, slots=True)
class FairTree:
    """One tree of cohorts. ``cohorts`` are those with somebody in them that the reader sees.

    ``more``: how many of them the page does not show.
    """

    root: str
    mode: Fairness
    cohorts: tuple[FairCohort, ...]
    more: int = 0


def fair_trees(actor: Actor, board: Board | None = None) -> list[FairTree]:
    """Return the trees in which the reader sees anybody, by name. As many queries as a board."""
    board = board or load_board(actor, past=True)
    view = View(board.snapshot, lambda: board.heads, board.line.workloads)
    found = []
    for root in sorted(_roots(board.snapshot)):
        mode = view.regime.mode(cohort_key(root))
        cohorts = tuple(_cohorts(view, actor, board.queues, root))
        seen = actor.sees_everything or bool(cohorts) or _is_inside(board, root)
        if seen:
            found.append(FairTree(root, mode, cohorts))
    return found


def fair_cells(trees: list[FairTree]) -> Iterator[dict[str, Any]]:
    """Yield every sister as a row of a file or of REST."""
    for tree in trees:
        for cohort in tree.cohorts:
            for child in cohort.turns.children:
                yield _cells(tree, cohort, child)


def headline(trees: list[FairTree]) -> str:
    """Return the sentence over the page."""
    fair = [tree for tree in trees if tree.mode is not Fairness.NONE]
    if not trees:
        return gettext("No cohort shares anything yet")
    if not fair:
        return gettext("Priority and age alone decide: no tree shares by weight or history")
    firsts = [
        child.name
        for tree in fair
        for cohort in tree.cohorts[:1]
        for child in cohort.turns.children
        if child.turn == 1
    ]
    if not firsts:
        return gettext("Nobody waits: what is free goes to whoever asks")
    return gettext("%(names)s: whose turn it is next") % {"names": ", ".join(firsts)}


def _figure(child: Child, *, by_history: bool) -> str:
    if by_history:
        if child.each is None:
            return gettext("comes last without weight")
        words = gettext("has used %(n)s GPU-hours for each promised GPU and weight")
        return words % {"n": by_locale(f"{child.each:,.2f}")}
    if child.share is None:
        return gettext("comes last without weight")
    return gettext("borrows %(n)s %% by weight") % {"n": by_locale(f"{child.share:,.1f}")}


def _roots(snapshot: Snapshot) -> set[str]:
    """Return the tops of trees: cohorts inside none, and those that are only named."""
    named = {queue.cohort for queue in snapshot.cluster_queues.values() if queue.cohort}
    named |= {one.parent for one in snapshot.cohorts.values() if one.parent}
    tops = {name for name, one in snapshot.cohorts.items() if one.parent is None}
    return tops | (named - snapshot.cohorts.keys())


def _cohorts(
    view: View, actor: Actor, own: Mapping[str, object], root: str
) -> Iterator[FairCohort]:
    """Yield the cohorts of a tree from the top down, sisters by name."""
    below: dict[str, list[str]] = {}
    for name, one in view.snapshot.cohorts.items():
        if one.parent:
            below.setdefault(one.parent, []).append(name)
    stack = [(root, 1)]
    while stack:
        name, level = stack.pop()
        turns = turns_of(actor, view, name, own)
        if turns is not None and turns.children:
            yield FairCohort(name, level, turns)
        stack += [(child, level + 1) for child in sorted(below.get(name, ()), reverse=True)]


def _is_inside(board: Board, root: str) -> bool:
    """Return whether a queue of the reader's hangs somewhere below."""
    cohorts = board.snapshot.cohorts
    for name in board.queues:
        at: str | None = board.snapshot.cluster_queues[name].cohort
        while at is not None:
            if at == root:
                return True
            at = cohorts[at].parent if at in cohorts else None
    return False


def _cells(tree: FairTree, cohort: FairCohort, child: Child) -> dict[str, Any]:
    return {
        "tree": tree.root,
        "fairness": tree.mode.value,
        "half_life_days": cohort.turns.half_life_days if cohort.turns.by_history else None,
        "cohort": cohort.name,
        "name": child.name,
        "kind": "queue" if child.is_queue else "cohort",
        "turn": child.turn,
        "waiting": child.waiting,
        "weight": child.weight,
        "weight_percent": round(child.part, 6),
        "promised_gpus": child.promised,
        "held_gpus": child.held,
        "borrows": child.borrows,
        "gpu_hours_of_late": round(child.hours, 6),
        "gpu_hours_per_gpu_and_weight": None if child.each is None else round(child.each, 6),
        "share_percent": None if child.share is None else round(child.share, 6),
        "would_borrow": child.would_borrow,
    }
