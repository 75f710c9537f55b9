"""Partial admission: with how few pods less a workload gets in (``FORMAT.md`` 5.7)."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from scheduling.engine.snapshot import PodSet, Workload

T = TypeVar("T")


def reducible(workload: Workload) -> bool:
    """Return whether some pod set is content with fewer pods."""
    return _missing(workload) > 0


def search(workload: Workload, works: Callable[[Workload], T | None]) -> T | None:
    """Return what ``works`` says of the largest size at which it says anything.

    It is assumed that what works with more pods works with fewer. Cost: log2 of the pods that
    may be missing.
    """
    low, high = 0, _missing(workload) + 1
    best: T | None = None
    while low < high:
        middle = (low + high) // 2
        found = works(reduced(workload, middle))
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
    return best


def reduced(workload: Workload, step: int) -> Workload:
    """Return the workload with the counts of one step; the missing pods are spread."""
    total = _missing(workload)
    pod_sets = tuple(
        replace(p, count=p.count - (_delta(p) * step // total if total else 0))
        for p in workload.pod_sets
    )
    return replace(workload, pod_sets=pod_sets)


def _missing(workload: Workload) -> int:
    return sum(_delta(pod_set) for pod_set in workload.pod_sets)


def _delta(pod_set: PodSet) -> int:
    return 0 if pod_set.min_count is None else max(0, pod_set.count - pod_set.min_count)
