"""The policies: how good a hole is for a shape, as plain functions.

Each is asked only about holes that fit, and answers with a merit (the larger the better, whole
numbers) and the devices to take. Equal holes get equal answers, so an answer can be remembered.
What still ties is not settled here: the node with the lowest number goes first, always.
Sources: ``placement.md`` 1.10, 4.1 and 4.4.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

from scheduling.engine.machines import WHOLE
from scheduling.engine.scoring.devices import crossed
from scheduling.engine.scoring.holes import (
    Hole,
    Shape,
    after,
    counted,
    idle,
    kept,
    loosest,
    spares,
    tightest,
    ways,
)
from scheduling.engine.scoring.popularity import Popularity
from scheduling.engine.terms import DeviceLocality

STEPS = 50
# The gradient (thousandths of a device) from which on each further step is reached: a sigmoid,
# fine around zero and coarse far from it. Coarse on purpose: many nodes then tie, the lowest
# number wins, work concentrates, and nodes stay whole for large shapes.
_STEPS_FROM = tuple(math.ceil(WHOLE * math.log(step / (STEPS - step))) for step in range(1, STEPS))

_FINE = 1_000_000  # parts of a node, before they are added up and cut to per cent
_TIE = 1000  # more than the per cent that settle a tie
_LAST = 1_000_000  # more than any merit


class Seat(NamedTuple):
    """A place in a hole: how good it is, and which devices, by index."""

    merit: int
    devices: tuple[int, ...]


Policy = Callable[[Hole, Shape], Seat]


class Scale(NamedTuple):
    """What makes different resources comparable: ordinary ones in their order, then devices.

    ``sizes`` are those of the largest node, devices in thousandths; 0 where no node has any.
    """

    sizes: tuple[int, ...]
    weights: tuple[int, ...]


def scale_of(
    empty: Collection[Hole], weights: Sequence[int] = (), plain: int | None = None
) -> Scale:
    """Return the scale of these nodes, given with nothing on them.

    Without weights devices count as much as all ordinary resources together. Of the amounts the
    ``plain`` first are of ordinary resources, the others count devices; None: all are ordinary.
    """
    columns = zip(*((*hole.amounts[:plain], idle(hole, plain)) for hole in empty), strict=True)
    sizes = tuple(map(max, columns))
    ordinary = max(len(sizes) - 1, 0)
    return Scale(sizes, tuple(weights) or (1,) * ordinary + (max(ordinary, 1),))


def fragmentation(popularity: Popularity, hole: Hole, shape: Shape) -> Seat:
    """Rate by how much of a fragment the pod removes: the steepest descent goes first.

    The devices are those of the steepest exact gradient; of equal ones the tightest, then the
    lowest index. Without any shape in the distribution all merits are equal.
    """
    before = popularity.fragment(hole)
    best: tuple[int, ...] = ()
    gradient = None
    for devices in ways(hole, shape):
        descent = before - popularity.fragment(after(hole, shape, devices))
        if gradient is None or descent > gradient:
            best, gradient = devices, descent
    assert gradient is not None, "a policy is asked only about holes that fit"
    return Seat(bisect_right(_STEPS_FROM, gradient // max(popularity.total, 1)), best)


def settled(popularity: Popularity, scale: Scale, hole: Hole, shape: Shape) -> Seat:
    """Rate by fragments; of nodes that tie the untouched go last (``placement.md`` 4.4).

    Where nobody is known to come, or a node's devices are not told apart, the fullest goes first.
    """
    seat = fragmentation(popularity, hole, shape)
    apart = popularity.total and hole.devices
    last = min(hole.devices) == WHOLE if apart else _left(scale, hole, shape)
    return seat._replace(merit=seat.merit * _TIE - last)


def binpack(scale: Scale, hole: Hole, shape: Shape) -> Seat:
    """Rate by how little the node then has left, in all resources: the fullest goes first.

    What is left is measured by the largest node, not by the node's own size: a small node is
    used up before a hole is made in a large one. Takes the tightest devices.
    """
    return Seat(-_left(scale, hole, shape), tightest(hole, shape))


def spread(scale: Scale, hole: Hole, shape: Shape) -> Seat:
    """Rate the other way round: the node and the devices with most left go first."""
    return Seat(_left(scale, hole, shape), loosest(hole, shape))


def _left(scale: Scale, hole: Hole, shape: Shape) -> int:
    """Return what will be left, in per cent of the largest node."""
    plain = len(scale.sizes) - 1
    gone = shape.amounts
    devices = shape.devices * shape.ask.share_on(hole.layout) if hole.devices else 0
    takes = (*gone[:plain], devices + WHOLE * sum(counted(hole, gone, plain)))
    free = (*hole.amounts[:plain], idle(hole, plain))
    left = sum(
        weight * _FINE * (amount - take) // size
        for take, amount, size, weight in zip(takes, free, *scale, strict=True)
        if size
    )
    return left * 100 // (_FINE * sum(scale.weights))


def polite(policy: Policy, hole: Hole, shape: Shape) -> Seat:
    """Rate by the policy, among places that are equally polite.

    Who prefers an island goes first where its devices lie in fewest. Who asks for no GPU goes
    first to nodes without, then where the free GPUs keep their part of CPU and memory.
    """
    seat = policy(hole, shape)
    if shape.locality is DeviceLocality.PREFER:
        return seat._replace(merit=seat.merit - _LAST * (crossed(hole.spare, seat.devices) - 1))
    if hole.keep is None or not kept(hole, shape):
        return seat
    return seat._replace(merit=seat.merit - _LAST * (1 if spares(hole, shape) else 2))


def policy_of(name: str, popularity: Popularity, scale: Scale) -> Policy:
    """Return the policy of this name. Raises KeyError for any other name."""
    known: dict[str, Policy] = {
        "fragmentation": partial(settled, popularity, scale),
        "binpack": partial(binpack, scale),
        "spread": partial(spread, scale),
    }
    return partial(polite, known[name])
