"""Partial admission: with how few pods less a workload gets in (``FORMAT.md`` 5.7, K36).

A size counts the pods that are missing: 0 is the whole workload, :func:`most_missing` leaves
every pod set its minimum.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from scheduling.engine.gangs import may_lack_pods, slice_size, smallest_gang
from scheduling.engine.snapshot import Assignment, PodSet, Workload

T = TypeVar("T")


def reducible(workload: Workload) -> bool:
    """Return whether some pod set is content with fewer pods."""
    for pod_set in workload.pod_sets:  # noqa: SIM110 - asked very often, a generator costs more
        if pod_set.min_count is not None and _delta(pod_set):
            return True
    return False


def most_missing(workload: Workload) -> int:
    """Return how many pods the workload can do without."""
    return sum(_delta(pod_set) for pod_set in workload.pod_sets)


def search(
    workload: Workload, works: Callable[[Workload], T | None], *, in_slices: bool = False
) -> T | None:
    """Return what ``works`` says of the largest size at which it says anything.

    It is assumed that what works with more pods works with fewer. ``in_slices``: only whole
    slices are asked for, where pods come in slices. Cost: log2 of the pods that may be missing.
    """
    low, high = 0, most_missing(workload) + 1
    best: T | None = None
    while low < high:
        middle = (low + high) // 2
        found = works(reduced(workload, middle, in_slices=in_slices))
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
    return best


def reduced(workload: Workload, size: int, *, in_slices: bool = False) -> Workload:
    """Return the workload with the counts of one size; the missing pods are spread.

    It is content with exactly these: the copy has no minimum of its own any more.
    """
    total = most_missing(workload)
    if not total:
        return workload
    counts = ((p, p.count - _delta(p) * size // total) for p in workload.pod_sets)
    if in_slices:
        counts = ((p, _whole(p, count)) for p, count in counts)
    pod_sets = tuple(replace(p, count=count, min_count=None) for p, count in counts)
    return replace(workload, pod_sets=pod_sets)


def _whole(pod_set: PodSet, count: int) -> int:
    """Return as many of the pods as make up whole slices, but no fewer than its minimum."""
    fewer = count - count % slice_size(pod_set)
    return fewer if fewer >= (pod_set.min_count or 0) else count


def smallest(workload: Workload) -> Workload:
    """Return the workload with the fewest pods that it is content with.

    What this one can never have makes the workload impossible; what it lacks is what it lacks.
    Of a gang with a minimum those are the pods without which it does not run.
    """
    if may_lack_pods(workload):
        return smallest_gang(workload)
    return reduced(workload, most_missing(workload))


def grants(workload: Workload, assignments: Iterable[Assignment]) -> bool:
    """Return whether the assignments give every pod set, in order, a number that it takes."""
    granted = [(a.pod_set, a.count) for a in assignments]
    if [name for name, _ in granted] != [pod_set.name for pod_set in workload.pod_sets]:
        return False
    pairs = zip(workload.pod_sets, granted, strict=True)
    return all(p.count - _delta(p) <= count <= p.count for p, (_, count) in pairs)


def is_whole(workload: Workload, assignments: Iterable[Assignment]) -> bool:
    """Return whether the assignments give every pod of the workload a place."""
    return [a.count for a in assignments] == [p.count for p in workload.pod_sets]


def _delta(pod_set: PodSet) -> int:
    return 0 if pod_set.min_count is None else max(0, pod_set.count - pod_set.min_count)
