"""What work asks for and what admitted work holds, in quota and on nodes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from scheduling.engine.machines import (
    GPU,
    PODS,
    VGPU_CORES,
    VGPU_MEMORY,
    VGPU_NUMBER,
    WHOLE,
    Amounts,
)
from scheduling.engine.snapshot import (
    Assignment,
    ClusterQueue,
    DeviceRequest,
    FlavorResource,
    PodSet,
    Workload,
)
from scheduling.engine.standing import standing
from scheduling.engine.terms import DeviceLocality

_GPU_NAMES = (GPU, "gpu", "amd.com/gpu", VGPU_NUMBER)
_GPU_PREFIXES = ("nvidia.com/mig-",)
_PER_CENT = WHOLE // 100


@lru_cache(maxsize=1024)
def is_gpu(resource: str) -> bool:
    """Return whether ``resource`` counts GPUs or slices of them."""
    return resource in _GPU_NAMES or resource.startswith(_GPU_PREFIXES)


def is_whole_gpu(resource: str) -> bool:
    """Return whether ``resource`` counts GPUs, or turns on them, and not slices."""
    return resource in _GPU_NAMES


def by_importance(resources: Iterable[str]) -> list[str]:
    """Return ``resources`` in the order in which people are told of them: GPUs first."""
    return sorted(resources, key=lambda resource: (not is_gpu(resource), resource))


def pod_footprint(pod_set: PodSet) -> dict[str, int]:
    """Return what one pod takes of its node: its requests, and one of the node's pod slots."""
    asked = {resource: amount for resource, amount in pod_set.requests.items() if amount > 0}
    return {**asked, PODS: 1}


def requested_devices(
    requests: Amounts, locality: DeviceLocality = DeviceLocality.ANY, memory: int = 0
) -> DeviceRequest | None:
    """Return what a pod with these requests asks of single devices; None: of none.

    ``memory``: MiB of each whole GPU that it needs, where it says so. A MIG slice is a resource
    of its own and no part of a device here. Of ``volcano.sh/vgpu-*``, memory and per cent are
    of each vGPU; who names no memory, or all of a device, gets the device alone, as with Volcano.
    """
    number = requests.get(VGPU_NUMBER, 0)
    if number:
        cores, mib = requests.get(VGPU_CORES, 0), requests.get(VGPU_MEMORY, 0)
        if not mib or cores * _PER_CENT >= WHOLE:
            return DeviceRequest(number, WHOLE, mib, locality, alone=True)
        return DeviceRequest(number, cores * _PER_CENT, mib, locality)
    whole = sum(amount for resource, amount in requests.items() if is_whole_gpu(resource))
    return DeviceRequest(whole, WHOLE, memory, locality) if whole else None


def device_request(pod_set: PodSet) -> DeviceRequest | None:
    """Return what one pod asks of single devices: what it says itself, else its requests."""
    return pod_set.device or requested_devices(pod_set.requests)


def without_island(pod_set: PodSet) -> PodSet:
    """Return the pod set without what it asks of islands; the same where it asks nothing."""
    asked = pod_set.device
    if asked is None or asked.locality is DeviceLocality.ANY:
        return pod_set
    return replace(pod_set, device=replace(asked, locality=DeviceLocality.ANY))


def pod_charge(pod_set: PodSet) -> dict[str, int]:
    """Return what one pod is charged in quota: its footprint, unless it is transformed (K20)."""
    if pod_set.charges is None:
        return pod_footprint(pod_set)
    charged = {resource: amount for resource, amount in pod_set.charges.items() if amount > 0}
    return {**charged, PODS: 1}


def covered(queue: ClusterQueue) -> frozenset[str]:
    """Return every resource for which the queue has quota lines."""
    return frozenset(resource for group in queue.groups for resource in group.resources)


def asked_of(queue: ClusterQueue, pod_set: PodSet) -> dict[str, int]:
    """Return what one pod asks of the queue's quota; its slot only where ``pods`` is covered."""
    return {
        resource: amount
        for resource, amount in pod_charge(pod_set).items()
        if resource != PODS or PODS in covered(queue)
    }


def demand(pod_sets: Iterable[PodSet]) -> dict[str, int]:
    """Return what a whole gang asks of nodes, pod slots included."""
    return _sum((pod_set, pod_footprint(pod_set)) for pod_set in pod_sets)


def quota_demand(pod_sets: Iterable[PodSet]) -> dict[str, int]:
    """Return what a whole gang is charged in quota, pod slots included."""
    return _sum((pod_set, pod_charge(pod_set)) for pod_set in pod_sets)


def _sum(pods: Iterable[tuple[PodSet, Mapping[str, int]]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for pod_set, each in pods:
        for resource, amount in each.items():
            total[resource] += amount * pod_set.count
    return dict(total)


def quota_usage(
    pod_set: PodSet, count: int, flavors: Mapping[str, str]
) -> Counter[FlavorResource]:
    """Return what ``count`` pods are charged under this choice of flavors."""
    usage: Counter[FlavorResource] = Counter()
    _add(usage, pod_set, count, flavors)
    return usage


def _add(
    usage: Counter[FlavorResource], pod_set: PodSet, count: int, flavors: Mapping[str, str]
) -> None:
    for resource, amount in _charges(pod_set):
        if (flavor := flavors.get(resource)) is not None:
            column = FlavorResource(flavor, resource)
            usage[column] = usage.get(column, 0) + amount * count


_known: dict[int, tuple[PodSet, tuple[tuple[str, int], ...]]] = {}
_MOST_KNOWN = 10_000


def _charges(pod_set: PodSet) -> tuple[tuple[str, int], ...]:
    """Return what one pod is charged; remembered, for equal gangs share their pod sets."""
    known = _known.get(id(pod_set))
    if known is None or known[0] is not pod_set:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[id(pod_set)] = pod_set, tuple(pod_charge(pod_set).items())
    return known[1]


def charged(workload: Workload, assignments: Iterable[Assignment]) -> Counter[FlavorResource]:
    """Return what a workload that stands on ``assignments`` is charged in its queue."""
    usage: Counter[FlavorResource] = Counter()
    for pod_set, assignment in paired(workload, assignments):
        _add(usage, pod_set, assignment.count, assignment.flavors)
    return usage


def charged_alike(
    holdings: Iterable[tuple[Workload, tuple[Assignment, ...]]],
) -> Iterator[tuple[Workload, Mapping[FlavorResource, int]]]:
    """Yield what each is charged on its assignments; once for equal work on equal grounds."""
    known: dict[tuple[int, ...], tuple[object, Counter[FlavorResource]]] = {}
    for workload, held in holdings:
        kind = (id(workload.pod_sets), *map(id, held))
        if kind not in known:  # whose numbers stay theirs, for they are kept alive
            known[kind] = (workload.pod_sets, held), charged(workload, held)
        yield workload, known[kind][1]


def held_usage(workload: Workload) -> Counter[FlavorResource]:
    """Return what an admitted workload is charged; nothing for a pending one."""
    return charged(workload, standing(workload))


def paired(
    workload: Workload, assignments: Iterable[Assignment]
) -> Iterator[tuple[PodSet, Assignment]]:
    """Yield each assignment with its pod set; a pod set that is gone holds nothing."""
    if len(workload.pod_sets) == 1:  # by far the most work
        (only,) = workload.pod_sets
        yield from ((only, a) for a in assignments if a.pod_set == only.name)
        return
    pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
    for assignment in assignments:
        if assignment.pod_set in pod_sets:
            yield pod_sets[assignment.pod_set], assignment


def shape(pod_set: PodSet) -> tuple[object, ...]:
    """Return a hashable value, equal for pod sets that are interchangeable to the engine."""
    return (
        pod_set.name,
        pod_set.count,
        tuple(sorted(pod_set.requests.items())),
        tuple(sorted(pod_set.node_selector.items())),
        pod_set.tolerations,
        pod_set.topology,
        pod_set.min_count,
        pod_set.affinity,
        None if pod_set.charges is None else tuple(sorted(pod_set.charges.items())),
        None if pod_set.flavors is None else tuple(sorted(pod_set.flavors.items())),
        pod_set.role_minimum,
        pod_set.subgroups,
        pod_set.device,
        tuple(sorted(pod_set.beside.items())),
    )
