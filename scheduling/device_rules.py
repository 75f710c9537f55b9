"""What a workload should know of the devices that it asks for, and the names it asks by."""

import operator
from collections.abc import Collection, Iterator
from dataclasses import replace

from gpuplatform.common.diagnostics import Diagnostic
from scheduling.devices import named_requests
from scheduling.engine.atlas import carries
from scheduling.engine.machines import GPU, VGPU_NUMBER, Node
from scheduling.specs import PodSetSpec, WorkloadSpec, subject_of
from scheduling.world import World


def with_real_names(spec: WorkloadSpec) -> WorkloadSpec:
    """Return the spec with parts of devices under the names that nodes and queues use."""
    renamed = tuple(map(_renamed, spec.pod_sets))
    same = all(map(operator.is_, renamed, spec.pod_sets))
    return spec if same else replace(spec, pod_sets=renamed)


def _renamed(pod_set: PodSetSpec) -> PodSetSpec:
    named = named_requests(pod_set.requests)
    memory = max(named.memory_mib, pod_set.device_memory_mib)
    if memory == pod_set.device_memory_mib and named.requests == pod_set.requests:
        return pod_set
    return replace(pod_set, requests=named.requests, device_memory_mib=memory)


def check_devices(spec: WorkloadSpec, world: World) -> Iterator[Diagnostic]:
    """Yield what was read under another name, and where nothing guards the memory of a device."""
    subject = subject_of(spec)
    for index, pod_set in enumerate(spec.pod_sets):
        path, named = f"pod_sets[{index}].requests", named_requests(pod_set.requests)
        for old, new in named.aliases:
            yield Diagnostic("RESOURCE_ALIAS", subject, f"{path}[{old}]", {"old": old, "new": new})
        if VGPU_NUMBER in named.requests and VGPU_NUMBER not in pod_set.requests:
            numbers = {"pod_set": pod_set.name, "resource": VGPU_NUMBER}
            yield Diagnostic("VGPU_NUMBER_DEFAULTED", subject, path, numbers)
        memory = max(named.memory_mib, pod_set.device_memory_mib)
        if named.requests.get(GPU) and not memory:
            shared = _shared(spec, world)
            if shared:
                facts = {"pod_set": pod_set.name, "node": shared}
                yield Diagnostic("SHARED_WITHOUT_MEMORY", subject, path, facts)


def _shared(spec: WorkloadSpec, world: World) -> str:
    """Return the first node of the queue's flavors whose GPUs are used in turns, or "".

    Of all nodes for work outside every queue. Worked out once for the same flavors.
    """
    queue = world.cluster_queue_of(spec)
    quotas = world.snapshot.cluster_queues[queue].quotas if queue else None
    names = None if quotas is None else sorted({fr.flavor for fr in quotas})

    def find() -> str:
        return next((node.name for node in _nodes(names, world) if _in_turns(node)), "")

    return world.remembered(f"shared in {names}", find)


def _nodes(names: Collection[str] | None, world: World) -> Iterator[Node]:
    """Yield the nodes of these flavors; all of them where none are named."""
    flavors = world.snapshot.flavors
    for node in world.snapshot.nodes:
        if names is None or any(carries(node, flavors[n]) for n in names if n in flavors):
            yield node


def _in_turns(node: Node) -> bool:
    return (
        node.devices is not None and node.devices.replicas > 1 and bool(node.allocatable.get(GPU))
    )
