"""Sharing pods out among rooms: as few as can be, and of those the set that leaves least over."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

MOST_SUMS = 256  # how many sums of rooms are looked at for the snuggest set

K = TypeVar("K", bound=Any)


def share_out(rooms: Mapping[K, int], count: int) -> dict[K, int]:
    """Give ``count`` pods to as few rooms as can hold them, and of those to the snuggest set.

    All but the last are filled. Of equal rooms the first; the rooms must suffice.
    With more than ``MOST_SUMS`` sums to look at the set is not the snuggest for certain: the
    largest rooms are taken, and for the rest the tightest one that holds it.
    """
    order = sorted(rooms, key=rooms.__getitem__, reverse=True)  # equal ones stay in order
    chosen: list[K] = []
    left = count
    for place, name in enumerate(order):
        if rooms[name] >= left:
            rest = (other for other in order[place:] if rooms[other] >= left)
            snug = min(rest, key=rooms.__getitem__)
            if not place:
                return {snug: count}
            over = rooms[snug] - left
            chosen.append(snug)
            if over:
                chosen = _snuggest(order, rooms, place + 1, count, count + over) or chosen
            break
        chosen.append(name)
        left -= rooms[name]
    return _filled(chosen, rooms, count)


def _filled(chosen: Sequence[K], rooms: Mapping[K, int], count: int) -> dict[K, int]:
    shares: dict[K, int] = {}
    for name in chosen:
        shares[name] = min(rooms[name], count)
        count -= shares[name]
    return shares


def _snuggest(
    order: Sequence[K], rooms: Mapping[K, int], fewest: int, count: int, most: int
) -> list[K] | None:
    """Return the ``fewest`` rooms that sum up to least, but not below ``count``, largest first.

    ``most`` is a sum that is known to be possible. ``sums[n]`` is the set of all sums of n
    rooms, one bit for each. None: that would be too much work.
    """
    items = _at_most_alike(order, rooms, fewest)
    if len(items) * fewest > MOST_SUMS:
        return None
    mask, sums = (1 << (most + 1)) - 1, [1] + [0] * fewest
    history = [tuple(sums)]
    for item in items:
        for n in range(fewest, 0, -1):
            sums[n] |= (sums[n - 1] << rooms[item]) & mask
        history.append(tuple(sums))
    enough = sums[fewest] >> count
    total = count + (enough & -enough).bit_length() - 1
    return _traced(items, rooms, history, total)


def _traced(
    items: Sequence[K], rooms: Mapping[K, int], history: Sequence[tuple[int, ...]], total: int
) -> list[K]:
    """Return rooms that make up the sum, the earlier ones where there is a choice."""
    chosen: list[K] = []
    n = len(history[0]) - 1
    for index in range(len(items) - 1, -1, -1):
        if n and not history[index][n] >> total & 1:  # not to be had without this one
            chosen.append(items[index])
            n, total = n - 1, total - rooms[items[index]]
    return chosen[::-1]


def _at_most_alike(order: Sequence[K], rooms: Mapping[K, int], most: int) -> list[K]:
    """Return no more than ``most`` of equal rooms: further ones make no further sums."""
    seen: dict[int, int] = {}
    kept = []
    for name in order:
        room = rooms[name]
        seen[room] = seen.get(room, 0) + 1
        if seen[room] <= most:
            kept.append(name)
    return kept
