"""What may never happen on the devices of a node, in other words than those that decide."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from scheduling.engine.machines import WHOLE, Node
from scheduling.engine.scoring.devices import Ask, spare_of
from scheduling.engine.snapshot import Assignment, PodSet, Workload
from scheduling.engine.terms import DeviceLocality
from scheduling.engine.usage import device_request, paired

Standing = Iterable[tuple[Workload, tuple[Assignment, ...]]]


def devices_broken(
    nodes: Mapping[str, Node], standing: Standing, new: frozenset[str]
) -> Iterator[str]:
    """Yield a sentence for each device that gives too much, and each pod on wrong ones.

    ``standing``: all work with where it stands; ``new``: the keys of what was just placed, which
    alone can have broken anything.
    """
    shares: defaultdict[str, Counter[int]] = defaultdict(Counter)
    memory: defaultdict[str, Counter[int]] = defaultdict(Counter)
    touched: set[str] = set()
    for workload, assignments in standing:
        for pod_set, assignment in paired(workload, assignments):
            ask = _asked(pod_set)
            for name in assignment.nodes:
                node = nodes.get(name)
                if node is None or node.devices is None or ask is None:
                    continue
                seats, layout = assignment.devices.get(name, ()), spare_of(node.devices).layout
                for device in (device for seat in seats for device in seat):
                    shares[name][device] += ask.share_on(layout)
                    memory[name][device] += ask.memory_on(layout)
                if workload.key in new:
                    touched.add(name)
                    yield from _seated(workload, node, ask, seats, assignment.nodes[name])
    for name in sorted(touched):
        yield from _oversold(nodes[name], shares[name], memory[name])


def _asked(pod_set: PodSet) -> Ask | None:
    asked = device_request(pod_set)
    if asked is None:
        return None
    return Ask(asked.count, asked.share, asked.memory, asked.locality, asked.alone)


def _seated(
    workload: Workload, node: Node, ask: Ask, seats: tuple[tuple[int, ...], ...], pods: int
) -> Iterator[str]:
    """Yield where a pod has not the devices that it asked for."""
    assert node.devices is not None
    if len(seats) != pods:
        yield f"{workload.key} has devices for {len(seats)} of {pods} pods on {node.name}"
    for seat in seats:
        if len(set(seat)) != ask.devices or not set(seat) <= set(range(node.devices.count)):
            yield f"{workload.key} asks for {ask.devices} devices of {node.name}, and has {seat}"
        islands = [set(island) for island in node.devices.islands if set(island) & set(seat)]
        if ask.locality is DeviceLocality.REQUIRE and len(islands) > 1:
            yield f"{workload.key} stands on {seat} of {node.name}, which are no island"


def _oversold(node: Node, shares: Counter[int], memory: Counter[int]) -> Iterator[str]:
    assert node.devices is not None
    for device in sorted(shares):
        if shares[device] > WHOLE:
            yield f"device {device} of {node.name} gives {shares[device]} of {WHOLE}"
        if node.devices.memory is not None and memory[device] > node.devices.memory:
            yield f"device {device} of {node.name} gives {memory[device]} MiB of what it has"
