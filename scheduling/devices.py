"""What a node says of its GPUs, and what pods ask of parts of them, in clusters' words. Pure.

Facts of a node come from the labels of NVIDIA's GPU feature discovery, from what Volcano's
device plugin offers, and, for islands, from an annotation of ours. Sources: ``decisions.md`` 5,
``placement.md`` 5; docs/concepts/gpus-and-islands.md.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scheduling.engine.machines import (
    GPU,
    VGPU_CORES,
    VGPU_MEMORY,
    VGPU_NUMBER,
    Amounts,
    Devices,
)

OURS = "gpuplatform.io/"
ISLANDS = f"{OURS}gpu-islands"  # of a node: "0-3,4-7"; of indices in no row "0+2,1+3"
COUNT, MEMORY = "nvidia.com/gpu.count", "nvidia.com/gpu.memory"
REPLICAS = "nvidia.com/gpu.replicas"
LABELS = (COUNT, MEMORY, REPLICAS)
MOST_DEVICES = 1024
MOST_REPLICAS = 100
GPU_MEMORY = "nvidia.com/gpu-memory"
MIB = 2**20
_PER_CENT = 100


class Fault(NamedTuple):
    """What is wrong with a fact: where it stands, which kind of fault, and its numbers."""

    path: str
    cause: str
    numbers: Mapping[str, str | int]


class Named(NamedTuple):
    """What one pod asks for under the names that count.

    ``memory_mib``: of each whole GPU that it needs, not charged. ``aliases``: the old name and
    what it was read as.
    """

    requests: dict[str, int]
    memory_mib: int = 0
    aliases: tuple[tuple[str, str], ...] = ()


def devices_of(
    labels: Mapping[str, str], annotations: Mapping[str, str], allocatable: Amounts
) -> Devices | None:
    """Return the GPUs of a node where a placement must tell them apart; else None.

    It must where islands are declared, where several pods share one device in turns, and where
    Volcano's parts of devices are offered. A fact that cannot be read is taken as absent.
    """
    islands = tuple(_islands(annotations.get(ISLANDS, ""))) or ()
    told = {label: _number(labels.get(label)) for label in LABELS}
    if allocatable.get(VGPU_NUMBER):
        return _parts(allocatable, told, islands)
    offered, replicas = allocatable.get(GPU, 0), max(1, told[REPLICAS])
    if not offered or (replicas == 1 and not islands):
        return None
    named = max((index + 1 for island in islands for index in island), default=0)
    count = told[COUNT] or max(named, -(-offered // replicas))
    return Devices(count, told[MEMORY] or None, replicas, islands)


def _parts(
    allocatable: Amounts, told: Mapping[str, int], islands: tuple[tuple[int, ...], ...]
) -> Devices | None:
    """Return the devices behind Volcano's vGPUs: a hundred cores and some memory of each."""
    count = told[COUNT] or allocatable.get(VGPU_CORES, 0) // _PER_CENT
    if not count:
        return None
    memory = told[MEMORY] or allocatable.get(VGPU_MEMORY, 0) // count
    replicas = max(1, allocatable[VGPU_NUMBER] // count)
    return Devices(count, memory or None, replicas, islands)


def faults_of(
    labels: Mapping[str, str], annotations: Mapping[str, str], allocatable: Amounts
) -> Iterator[Fault]:
    """Yield what is wrong with the facts of a node.

    No number, no island, a GPU in two islands or none, more offered than its devices have, parts
    of no whole devices. Labels of 0 are fine where no GPU is offered: that is how GPU feature
    discovery says so.
    """
    limits = {COUNT: MOST_DEVICES, REPLICAS: MOST_REPLICAS, MEMORY: 2**31 - 1}
    for label, most in limits.items():
        text = labels.get(label)
        if text is not None and not (_is_number(text) and int(text) <= most):
            yield Fault(f"labels[{label}]", "NotANumber", {"value": text[:64], "limit": most})
    most = MOST_DEVICES * MOST_REPLICAS
    for resource in (GPU, VGPU_NUMBER):
        offered = allocatable.get(resource, 0)
        if offered > most:
            numbers: dict[str, str | int] = {"value": str(offered), "limit": most}
            yield Fault(f"allocatable[{resource}]", "NotANumber", numbers)
    yield from _contradictions(labels, allocatable)
    if ISLANDS in annotations:
        yield from _island_faults(annotations[ISLANDS], labels, allocatable)


def _contradictions(labels: Mapping[str, str], allocatable: Amounts) -> Iterator[Fault]:
    """Yield where what is offered and the labels cannot both be true."""
    offered, parts = allocatable.get(GPU, 0), allocatable.get(VGPU_NUMBER, 0)
    for label in (COUNT, REPLICAS):
        text = labels.get(label, "")
        if (offered or parts) and _is_number(text) and not int(text):
            yield Fault(f"labels[{label}]", "NoneOfThem", {"offered": offered or parts})
            return
    count, cores = _number(labels.get(COUNT)), allocatable.get(VGPU_CORES, 0)
    most = count * max(1, _number(labels.get(REPLICAS)))
    if count and offered > most:
        numbers: dict[str, str | int] = {"offered": offered, "most": most}
        yield Fault(f"allocatable[{GPU}]", "MoreThanThere", numbers)
    if parts and cores % _PER_CENT:
        yield Fault(f"allocatable[{VGPU_CORES}]", "NotWholeDevices", {"cores": cores})
    devices = count or cores // _PER_CENT
    if 0 < parts < devices:
        numbers = {"parts": parts, "gpus": devices}
        yield Fault(f"allocatable[{VGPU_NUMBER}]", "FewerThanGpus", numbers)


def _island_faults(text: str, labels: Mapping[str, str], allocatable: Amounts) -> Iterator[Fault]:
    path = f"annotations[{ISLANDS}]"
    islands = _islands(text)
    named = sorted(index for island in islands for index in island)
    count = _number(labels.get(COUNT)) or (named[-1] + 1 if named else 0)
    per_device = max(1, _number(labels.get(REPLICAS)))
    count = max(count, -(-allocatable.get(GPU, 0) // per_device))
    twice = sorted({index for index in named if named.count(index) > 1})
    if not islands:
        yield Fault(path, "NotIslands", {"value": text[:64]})
    elif twice:
        yield Fault(path, "InTwoIslands", {"gpu": twice[0]})
    elif named[-1] >= count:
        yield Fault(path, "NoSuchGpu", {"gpu": named[-1], "gpus": count})
    elif len(named) < count:
        missing = min(set(range(count)) - set(named))
        yield Fault(path, "InNoIsland", {"gpu": missing, "gpus": count})


def _islands(text: str) -> list[tuple[int, ...]]:
    """Return the islands that a text names; none where any part of it cannot be read."""
    islands = []
    for part in text.split(",") if text.strip() else ():
        island = [index for span in part.split("+") for index in _span(span.strip())]
        if not island:
            return []
        islands.append(tuple(sorted(island)))
    return islands


def _span(text: str) -> range:
    first, dash, last = text.partition("-")
    last = last if dash else first
    if not (_is_number(first) and _is_number(last)) or int(last) >= MOST_DEVICES:
        return range(0)
    return range(int(first), int(last) + 1)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(2**31))


def _number(text: str | None) -> int:
    """Return a label as a number; 0 where it is absent or none."""
    return int(text) if text is not None and _is_number(text) else 0


def named_requests(requests: Mapping[str, int]) -> Named:
    """Return what a pod asks for under the names that nodes and queues use.

    ``nvidia.com/gpu-memory`` (bytes) is no resource of any node. Beside whole GPUs it says how
    much memory each of them must have for the pod; alone it is a part of one device, which
    Volcano calls ``volcano.sh/vgpu-memory`` (MiB). Who asks for parts without a number asks for
    a part of one device.
    """
    found, memory, aliases = dict(requests), 0, []
    if GPU_MEMORY in found:
        mib = -(-found.pop(GPU_MEMORY) // MIB)
        if found.get(GPU):
            memory = mib
            aliases.append((GPU_MEMORY, "device_memory_mib"))
        else:
            found[VGPU_MEMORY] = mib
            aliases.append((GPU_MEMORY, VGPU_MEMORY))
    parts = found.get(VGPU_MEMORY) or found.get(VGPU_CORES)
    if parts and VGPU_NUMBER not in found and not found.get(GPU):
        found[VGPU_NUMBER] = 1
    return Named(found, memory, tuple(aliases))
