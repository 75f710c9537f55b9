"""How much of a gang fits under ceilings when every pod set stands on one flavor. Pure.

Pods of one pod set never mix flavors (K31): two ceilings of 64 hold no pod set of 96. The
searches are bounded; where a bound is reached, the answer errs towards "it fits".
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

from scheduling.engine.flavors import MAX_STEPS, Option
from scheduling.engine.snapshot import FlavorResource, PodSet
from scheduling.engine.usage import quota_usage

Place = TypeVar("Place", bound=Hashable)
Used = frozenset[tuple[FlavorResource, int]]


def best_total(
    asks: Sequence[tuple[int, Collection[Place]]], ceilings: Mapping[Place, int]
) -> int:
    """Return the most that can be given when each ask goes to one of its places, whole or cut.

    Args:
        asks: the amounts, each with the places where it may go.
        ceilings: what each place holds.

    Cost: at most ``MAX_STEPS`` ways of filling the places are kept.
    """
    asked = sum(amount for amount, _ in asks)
    roomy = {place for _, places in asks for place in places if ceilings.get(place, 0) >= asked}
    if any(all(place in places for _, places in asks) for place in roomy):
        return asked  # one place takes all
    ways: set[tuple[tuple[Place, int], ...]] = {()}
    for amount, places in asks:
        ways = {_poured(way, place, amount, ceilings) for way in ways for place in places} or ways
        if len(ways) > MAX_STEPS:
            named = {place for _, places in asks for place in places}
            return min(asked, sum(ceilings.get(place, 0) for place in named))
    return max(sum(amount for _, amount in way) for way in ways)


def _poured(
    way: tuple[tuple[Place, int], ...], place: Place, amount: int, ceilings: Mapping[Place, int]
) -> tuple[tuple[Place, int], ...]:
    filled = dict(way)
    filled[place] = min(max(0, ceilings.get(place, 0)), filled.get(place, 0) + amount)
    return tuple(sorted(filled.items(), key=lambda item: str(item[0])))


def largest_gang(
    pod_sets: Sequence[PodSet],
    choices: Mapping[str, Sequence[Option]],
    ceilings: Mapping[FlavorResource, int],
) -> tuple[int, bool]:
    """Return how many whole pods fit, pod set by pod set in order, and whether that is exact.

    ``choices`` are the flavors that each pod set may use, by its name. Not exact: more ways
    than ``MAX_STEPS`` are left, and only the best were followed.
    """
    if _first_fit(pod_sets, choices, ceilings):
        return sum(pod_set.count for pod_set in pod_sets), True
    ways: dict[Used, int] = {frozenset(): 0}
    exact = True
    for pod_set in pod_sets:
        more: dict[Used, int] = {}
        for way, fitting in ways.items():
            for option in choices[pod_set.name] or ({},):
                used, pods = _packed(dict(way), pod_set, option, ceilings)
                more[used] = max(more.get(used, 0), fitting + pods)
        exact = exact and len(more) <= MAX_STEPS
        ways = dict(sorted(more.items(), key=lambda item: -item[1])[:MAX_STEPS])
    return max(ways.values()), exact


def _first_fit(
    pod_sets: Sequence[PodSet],
    choices: Mapping[str, Sequence[Option]],
    ceilings: Mapping[FlavorResource, int],
) -> bool:
    """Return whether the gang fits with the first flavors that take each pod set whole."""
    used: Used = frozenset()
    for pod_set in pod_sets:
        options = choices[pod_set.name] or ({},)
        tries = (_packed(dict(used), pod_set, option, ceilings) for option in options)
        found = next((after for after, pods in tries if pods == pod_set.count), None)
        if found is None:
            return False
        used = found
    return True


def _packed(
    used: dict[FlavorResource, int],
    pod_set: PodSet,
    option: Option,
    ceilings: Mapping[FlavorResource, int],
) -> tuple[Used, int]:
    """Return what is used after as many pods as fit, and how many those are."""
    each = quota_usage(pod_set, 1, option)
    lefts = (max(0, ceilings.get(fr, 0) - used.get(fr, 0)) // n for fr, n in each.items())
    pods = min(pod_set.count, *lefts) if each else pod_set.count
    for fr, amount in each.items():
        used[fr] = used.get(fr, 0) + amount * pods
    return frozenset(used.items()), pods
