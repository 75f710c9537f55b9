"""Where a gang stands together: the search in the tree of domains.

The closest tier that can hold everybody wins, the host being the closest; in it the fewest
domains of the last level, then the fewest hosts, then the tightest domain, then its name
(``placement.md`` 1.11, OURS). Inside a domain the fewest parts: largest first, best fit for the
rest. Whether there is any such domain is answered from counters alone.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from scheduling.engine.tally import Tally
from scheduling.engine.views import View

WEIGHED = 32  # domains of one tier that are weighed, the tightest first

K = TypeVar("K", bound=Any)
Placed = dict[int, int]  # pods by number of the node


def together(view: View, count: int, level: int) -> Placed | None:
    """Place all pods in one domain of that level or a closer one; None: no domain can.

    Level 1 is the outermost; at 0 the pods may stand in several of those.
    """
    if count > view.total:
        return None
    host = view.snug(count)
    if host is not None:
        return {host: count}
    tally = view.tally()
    for tier in range(tally.domains.depth, level - 1, -1):
        domain = tightest(view, tally, tier, count)
        if domain is not None:
            return inside(view, tally, tier, domain, count)
    return None


def largest(view: View, level: int) -> int:
    """Return how many pods the roomiest domain of that level can hold."""
    tally = view.tally()
    return view.most() if level > tally.domains.depth else tally.largest(level)


def tightest(view: View, tally: Tally, level: int, count: int) -> int | None:
    """Return the domain of the level in which so many pods should stand; None: none can."""
    candidates = list(islice(tally.at_least(level, count), WEIGHED))
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    fewest = -(-count // tally.largest(tally.domains.depth)), -(-count // view.most())
    best: tuple[tuple[int, int], int] | None = None
    for domain in candidates:  # tightest first: of equals the first one met stays
        view.looked(weighed=1)
        weight = _weight(tally, level, domain, count)
        if best is None or weight < best[0]:
            best = weight, domain
        if weight == fewest:
            break
    assert best is not None
    return best[1]


def _weight(tally: Tally, level: int, domain: int, count: int) -> tuple[int, int]:
    """Return how many domains of the last level, and how many hosts, the pods would need."""
    if level == tally.domains.depth:
        return 1, _hosts(tally.hosts[domain], count)
    parts = _shares(tally, level, domain, count)
    weights = [_weight(tally, level + 1, part, share) for part, share in parts.items()]
    return sum(leaves for leaves, _ in weights), sum(hosts for _, hosts in weights)


def _hosts(hosts: Mapping[int, int], count: int) -> int:
    """Return how many hosts hold so many pods, the roomiest taken first."""
    used = 0
    for pods in sorted(hosts, reverse=True):
        nodes = hosts[pods]
        if pods * nodes >= count:
            return used + -(-count // pods)
        used += nodes
        count -= pods * nodes
    return used


def inside(view: View, tally: Tally, level: int, domain: int, count: int) -> Placed:
    """Share the pods out in a domain that can hold them."""
    if level == tally.domains.depth:
        hosts = tally.domains.parts[level][domain]
        rooms = {number: pods for number in hosts if (pods := view.pods(number))}
        view.looked(len(hosts))
        return share_out(rooms, count, lambda number: (view.demerit(number), number))
    placed: Placed = {}
    for part, share in _shares(tally, level, domain, count).items():
        placed.update(inside(view, tally, level + 1, part, share))
    return placed


def _shares(tally: Tally, level: int, domain: int, count: int) -> dict[int, int]:
    rooms = tally.rooms[level + 1]
    parts = tally.domains.parts[level][domain]
    return share_out({part: rooms[part] for part in parts if rooms[part]}, count)


def share_out(
    rooms: Mapping[K, int], count: int, rank: Callable[[K], Any] = lambda name: name
) -> dict[K, int]:
    """Fill the largest rooms until one can hold the rest, and that one as tightly as possible.

    Of equal ones the lowest in ``rank``. The rooms must suffice.
    """
    shares: dict[K, int] = {}
    order = sorted(rooms, key=lambda name: (-rooms[name], rank(name)))
    for place, name in enumerate(order):
        if rooms[name] >= count:
            rest = (other for other in order[place:] if rooms[other] >= count)
            snug = min(rest, key=lambda other: (rooms[other], rank(other)))
            shares[snug] = count
            break
        shares[name] = rooms[name]
        count -= rooms[name]
    return shares
