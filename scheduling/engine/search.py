"""Where a gang stands together: the search in the tree of domains.

The closest tier that can hold everybody wins, the host being the closest; in it the fewest
domains of the last level, then the fewest hosts, then the tightest domain, then its name
(``placement.md`` 1.11, OURS). Inside a domain the fewest parts, and of those the ones that leave
least over. Whether there is any such domain is answered from counters alone. Where pods come in
slices, all of it counts in whole ones (``slices.py``).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from scheduling.engine.sharing import share_out
from scheduling.engine.slices import Grain, grain_at, whole
from scheduling.engine.tally import Tally
from scheduling.engine.views import View

WEIGHED = 32  # domains of one tier that are weighed, the tightest first

Placed = dict[int, int]  # pods by number of the node
Parcel = tuple[tuple[int, ...], int]  # domains of one level, and the pods that they share


def together(view: View, count: int, level: int, grain: Grain = ()) -> Placed | None:
    """Place all pods in one domain of that level or a closer one; None: no domain can.

    Level 1 is the outermost; at 0 the pods may stand in several of those.
    """
    if count > view.total or count % grain_at(grain, 0):
        return None
    host = view.snug(count)
    if host is not None:
        return {host: count}
    widest = view.field.domains.widest
    if level < len(widest) and count > view.most() * widest[level]:
        return None  # too large for any domain, even if all its nodes were like the roomiest
    tally = view.tally(grain)
    for tier in range(tally.domains.depth, level - 1, -1):
        domain = tightest(view, tally, tier, count)
        if domain is not None:
            return inside(view, tally, tier, domain, count)
    return None


def loosely(view: View, count: int, level: int, grain: Grain) -> Placed | None:
    """Fill the tightest domains of the slices' level first, so that large rooms stay whole."""
    tally = view.tally(grain)
    if count > tally.total or count % grain_at(grain, 0):
        return None
    if level > tally.domains.depth:
        return _on_tightest_hosts(view, tally, count)
    placed: Placed = {}
    for domain in tally.at_least(level, 1):
        gets = min(count, tally.rooms[level][domain])
        placed |= inside(view, tally, level, domain, gets)
        count -= gets
        if not count:
            break
    return placed


def _on_tightest_hosts(view: View, tally: Tally, count: int) -> Placed:
    hosts = ((pods, number) for number in tally.domains.of[0] if (pods := tally.pods(number)))
    placed: Placed = {}
    for pods, number in sorted(hosts, key=lambda host: (host[0], view.demerit(host[1]), host[1])):
        placed[number] = min(count, pods)
        count -= placed[number]
        if not count:
            break
    return placed


def largest(view: View, level: int, grain: Grain = ()) -> int:
    """Return how many pods the roomiest domain of that level can hold."""
    tally = view.tally(grain)
    if level > tally.domains.depth:
        return whole(view.most(), grain_at(grain, level))
    return tally.largest(level)


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
    leaves = hosts = 0
    for domains, pods in _parcels(tally, level, domain, count):
        leaves += len(domains)
        hosts += _hosts(_together(tally, domains), pods)
    return leaves, hosts


def _together(tally: Tally, domains: Sequence[int]) -> Mapping[int, int]:
    """Return how many hosts of these domains of the last level hold how many pods."""
    if len(domains) == 1:
        return tally.hosts(domains[0])
    found: Counter[int] = Counter()
    for domain in domains:
        found.update(tally.hosts(domain))
    return found


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
    placed: Placed = {}
    for domains, pods in _parcels(tally, level, domain, count):
        hosts = sorted(n for one in domains for n in tally.domains.parts[-1][one])
        rooms = tally.roomy(hosts)
        view.looked(len(hosts))
        placed |= share_out({n: rooms[n] for n in view.ranked(rooms)}, pods)
    return placed


def _parcels(tally: Tally, level: int, domain: int, count: int) -> list[Parcel]:
    """Share the pods out among domains of the last level, step by step.

    The parts of all domains that were chosen compete, as long as pods may be moved from one
    domain to another; where that would cut slices each domain keeps its pods.
    """
    parcels: list[Parcel] = [((domain,), count)]
    for below in range(level + 1, tally.domains.depth + 1):
        further: list[Parcel] = []
        rooms, parts = tally.rooms[below], tally.domains.parts[below - 1]
        for domains, pods in parcels:
            below_them = sorted(part for one in domains for part in parts[one])
            found = {part: rooms[part] for part in below_them if rooms[part]}
            shares = share_out(found, pods)
            if tally.grain(below) == tally.grain(below + 1):
                further.append((tuple(shares), pods))
            else:
                further += [((part,), share) for part, share in shares.items()]
        parcels = further
    return parcels
