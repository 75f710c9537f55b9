"""Fragments: what of a hole is of no use to the shapes that usually come.

A distribution of shapes says how popular each is. For a shape that fits, the fragment of a hole
is what is free on the devices that have too little for it; for any other shape, and for one
that asks for no device, all that is free is a fragment. Weighted by popularity that is the
fragment of the hole (``placement.md`` 4.1). Integers throughout: no sum depends on its order.
A device that is counted, not told apart, is a thousand thousandths; so is a slice of one.
"""

from bisect import bisect_right
from collections.abc import Mapping
from operator import gt
from typing import NamedTuple

from scheduling.engine.machines import WHOLE
from scheduling.engine.scoring.devices import Ask, Spare, useful
from scheduling.engine.scoring.holes import Hole, Shape

REMEMBERED = 200_000  # fragments kept; then the memory starts anew


class _Need(NamedTuple):
    """One shape, its ordinary amounts as ranks among all that is ever asked.

    ``counted``: the devices among its amounts; those that a node tells apart come last there.
    ``told``: only a node that tells devices apart will do.
    """

    ranks: tuple[int, ...]
    ask: Ask
    counted: tuple[int, ...]
    told: bool
    weight: int


class _Class(NamedTuple):
    """All that the fragment of a hole depends on: holes of one class have one fragment."""

    kind: str
    ranks: tuple[int, ...]
    counted: tuple[int, ...]
    spare: Spare  # in the order of what is free


class Popularity:
    """A distribution of shapes, with remembered fragments.

    ``weights``: how often each shape comes, whole numbers; only their relation counts.
    ``plain``: how many of the amounts are of ordinary resources, those behind them count
    devices; None: all are ordinary. ``total`` is the sum of the weights, and fragments are in
    thousandths of a device times ``total``.
    """

    def __init__(self, weights: Mapping[Shape, int], plain: int | None = None) -> None:
        assert all(weight >= 0 for weight in weights.values()), "no shape comes less than never"
        self.total = sum(weights.values())
        self.worked_out = 0
        self._plain = plain
        self._weights = {
            s: w for s, w in weights.items() if w and (s.devices or any(self._counted(s.amounts)))
        }
        columns = zip(*(shape.amounts[:plain] for shape in self._weights), strict=True)
        self._asked = tuple(tuple(sorted(set(column))) for column in columns)
        self._needs: dict[str, tuple[_Need, ...]] = {}
        self._fragments: dict[_Class, int] = {}

    def fragment(self, hole: Hole) -> int:
        """Return the fragment of a hole, in thousandths of a device times ``total``.

        Cost: O(shapes) once for each class of holes, O(devices log devices) after that.
        """
        ranks, counted = self._ranks(hole.amounts), self._counted(hole.amounts)
        if hole.columns:
            counted = counted[: -hole.columns]
        same = _Class(hole.kind, ranks, counted, hole.spare.ordered())
        found = self._fragments.get(same)
        if found is None:
            if len(self._fragments) >= REMEMBERED:
                self._fragments.clear()
            found = self._fragments[same] = self._work_out(same)
        return found

    def _ranks(self, amounts: tuple[int, ...]) -> tuple[int, ...]:
        """Tell amounts apart only where somebody who asks would notice."""
        return tuple(map(bisect_right, self._asked, amounts))

    def _counted(self, amounts: tuple[int, ...]) -> tuple[int, ...]:
        return () if self._plain is None else amounts[self._plain :]

    def _work_out(self, same: _Class) -> int:
        self.worked_out += 1
        idle = sum(same.spare.free) + WHOLE * sum(max(0, free) for free in same.counted)
        needs = self._of_kind(same.kind) if idle else ()
        return idle * self.total - sum(need.weight * _useful(same, need) for need in needs)

    def _of_kind(self, kind: str) -> tuple[_Need, ...]:
        if kind not in self._needs:
            self._needs[kind] = tuple(
                self._need(shape, weight)
                for shape, weight in self._weights.items()
                if not shape.kinds or kind in shape.kinds
            )
        return self._needs[kind]

    def _need(self, shape: Shape, weight: int) -> _Need:
        told = bool(shape.devices) and not shape.counted
        ranks, counted = self._ranks(shape.amounts), self._counted(shape.amounts)
        return _Need(ranks, shape.ask, counted, told, weight)


def _useful(same: _Class, need: _Need) -> int:
    """Return the thousandths of devices of use to the shape; none where it cannot stand."""
    devices = same.spare.free
    if (need.told and not devices) or any(map(gt, need.ranks, same.ranks)):
        return 0
    counted = need.counted[: len(same.counted)]
    if any(map(gt, counted, same.counted)):
        return 0
    found = WHOLE * sum(free for free, ask in zip(same.counted, counted, strict=True) if ask)
    if not devices or not need.ask.devices:
        return found
    of_use = useful(same.spare, need.ask)
    return found + of_use if of_use is not None else 0


def typical(counts: Mapping[Shape, int], percent: int = 95) -> dict[Shape, int]:
    """Return the most frequent shapes, until they make up ``percent`` of all that came.

    Of equally frequent ones the larger comes first: more of a device, then more of the other
    resources in their order, then by what else it asks of devices, then by the kinds that will
    do.
    """
    wanted, covered = sum(counts.values()) * percent, 0
    kept: dict[Shape, int] = {}
    for shape in sorted(counts, key=lambda shape: (-counts[shape], _size(shape))):
        if covered * 100 >= wanted:
            break
        kept[shape] = counts[shape]
        covered += counts[shape]
    return kept


def _size(shape: Shape) -> tuple[object, ...]:
    amounts = tuple(-amount for amount in shape.amounts)
    of_devices = -shape.devices, shape.memory, shape.locality, shape.alone, shape.counted
    return -shape.devices * shape.share, amounts, of_devices, sorted(shape.kinds)
