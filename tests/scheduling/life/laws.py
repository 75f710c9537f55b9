"""What holds after every step, whatever was done (``admission.md`` 2.2)."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from django.db.models import Q

from scheduling.engine.machines import GPU
from scheduling.engine.metering import admitted_ledger
from scheduling.engine.tree import queue_key
from scheduling.loader import load_snapshot
from scheduling.models import Admission, Node, Placement, PodSet, UsageInterval, Workload

HOLDING = ("admitted", "running")


def broken_laws() -> list[str]:
    """Return a sentence for each law that the rows break after the loop has come to rest."""
    laws = (
        _evicted_is_released,
        _admitted_holds,
        _finished_holds_nothing,
        _usage_is_what_is_held,
        _nodes_are_not_oversold,
        _waits_in_one_place,
        _reclaimable_within_count,
        _stories_fit,
    )
    return [sentence for law in laws for sentence in law()]


def _evicted_is_released() -> Iterator[str]:
    """I1: evicted, and no pod runs: not reserved after one look (the pods here stop at once)."""
    for row in Admission.objects.filter(released_at=None).exclude(evicted_at=None):
        yield f"{row.workload} was evicted at {row.evicted_at} and still holds"


def _admitted_holds() -> Iterator[str]:
    """I2: admitted means that quota is held, and once."""
    held = Counter(
        Admission.objects.filter(released_at=None, evicted_at=None, is_part=False).values_list(
            "workload", flat=True
        )
    )
    for row in Workload.objects.filter(status__in=HOLDING):
        if held[row.pk] != 1:
            yield f"{row} is {row.status} and holds {held[row.pk]} admissions"


def _finished_holds_nothing() -> Iterator[str]:
    """I3."""
    ended = Q(workload__status__in=["finished", "inactive"])
    for row in Admission.objects.filter(ended, released_at=None):
        yield f"{row.workload} is over and holds quota"
    for use in UsageInterval.objects.filter(ended, ended_at=None):
        yield f"{use.workload} is over and is metered"


def _usage_is_what_is_held() -> Iterator[str]:
    """I4: what the books charge a queue is the sum of what its admitted work is metered for.

    Pods whose node has left hold quota for a while and are metered no more.
    """
    snapshot = load_snapshot()
    ledger = admitted_ledger(snapshot)
    metered: Counter[str] = Counter()
    for use in UsageInterval.objects.filter(ended_at=None):
        metered[use.cluster_queue] += use.amount
    known = set(Node.objects.values_list("name", flat=True)) | {""}
    for row in Placement.objects.filter(admission__released_at=None).exclude(node__in=known):
        metered[row.admission.cluster_queue] += row.count * row.requests.get(GPU, 0)
    for name, queue in snapshot.cluster_queues.items():
        charged = sum(ledger.used(queue_key(name), fr) for fr in queue.quotas)
        if charged != metered[name]:
            yield f"{name} is charged {charged} and metered {metered[name]}"


def _nodes_are_not_oversold() -> Iterator[str]:
    load: Counter[str] = Counter()
    for row in Placement.objects.filter(admission__released_at=None):
        load[row.node] += row.count * row.requests.get(GPU, 0)
    for node in Node.objects.all():
        if load[node.name] > node.allocatable.get(GPU, 0):
            yield f"{node} carries {load[node.name]} GPUs"


def _waits_in_one_place() -> Iterator[str]:
    """I5: waiting work stands in line, or is kept out for a reason that it can tell."""
    snapshot = load_snapshot()
    known = Counter(w.key for w in snapshot.workloads if w.admission is None)
    for row in Workload.objects.filter(status="pending"):
        reserved = row.pending_reason == "UnsatisfiedAdmissionChecks"
        if known[str(row.pk)] != (0 if reserved else 1):
            yield f"{row} waits in {known[str(row.pk)]} places"
        if not row.pending_reason:
            yield f"{row} waits and cannot say why"


def _reclaimable_within_count() -> Iterator[str]:
    """I6."""
    for pod_set in PodSet.objects.all():
        if pod_set.finished > pod_set.count:
            yield f"{pod_set} has {pod_set.finished} finished"


def _stories_fit() -> Iterator[str]:
    """No admission overlaps another of its workload, and every interval lies inside of its own."""
    for row in Workload.objects.prefetch_related("admissions"):
        stays = [a for a in row.admissions.all() if not a.is_part]
        stays.sort(key=lambda a: (a.admitted_at, a.pk))
        for one, following in pairwise(stays):
            if one.released_at is None or one.released_at > following.admitted_at:
                yield f"{row} was admitted twice at {following.admitted_at}"
    for use in UsageInterval.objects.select_related("admission"):
        held = use.admission
        late = held.released_at and (use.ended_at is None or use.ended_at > held.released_at)
        if use.started_at < held.admitted_at or late:
            yield f"{use.workload} is metered outside of its admission"
