"""Packing of single pods on the nodes of a real trace, as in the published comparison.

Protocol: ``placement.md`` 4.2. Pods arrive one by one and never leave; one that fits nowhere has
failed for good. The engine's own placement function places them, quotas off. Data:
``data/openb/README.md`` of the shared folder.
"""

import csv
import gc
import random
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scheduling.bench.report import Figure, Goal, Report
from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import FreeCapacity, Seats
from scheduling.engine.machines import CPU, GPU, MEMORY, PODS, WHOLE, Devices, Flavor, Node
from scheduling.engine.placement import assign_pod_set
from scheduling.engine.scoring.holes import Hole, Shape
from scheduling.engine.snapshot import DeviceRequest, Expression, PodSet, Recent, Snapshot
from scheduling.engine.terms import Operator, PlacementPolicy
from scheduling.engine.usual import expect

NODES = "openb_node_list_gpu_node.csv"
PUBLISHED = "published/fgd_published_summary.csv"
SEEDS = tuple(range(42, 52))
ARRIVAL = 130  # per cent of all GPUs that are asked for in the end
FULL = 100
FLOORS = {100: 95.0, 130: 95.2}  # default list
STRETCH = 95.6  # at 130 %
SHOWN = (20, 40, 60, 80, 90, 100, 130)  # per cent of arrival
SLACK = 0.3  # how far below the published best another list may stay
RIVALS = {"fragmentation": "FGD", "binpack": "BestFit", "spread": "Random"}
MODEL = "model"  # the label of a node's kind
SLOTS = 10_000  # pods of a node: the protocol does not bound them
_LARGE, _LARGE_UNTIL = 8, 80  # a pod of 8 GPUs must find a place until 80 % have arrived


Place = tuple[str, tuple[int, ...]]  # the node, and the devices of the pod


@dataclass(frozen=True, slots=True)
class Trace:
    """The nodes, the pods in the order of their names, and what others reached (per cent)."""

    name: str
    holes: tuple[Hole, ...]
    pods: tuple[Shape, ...]
    published: Mapping[tuple[str, int], tuple[float, float]]  # allocated, fragmented share of idle

    @property
    def milli(self) -> int:
        """Return the thousandths of GPUs of the whole cluster."""
        return sum(len(hole.devices) for hole in self.holes) * WHOLE


def read_trace(folder: Path, name: str = "default") -> Trace:
    """Read nodes, one pod list and the published figures. Raises OSError where one is missing."""
    pods = sorted(_rows(folder / f"openb_pod_list_{name}.csv"), key=lambda row: row["name"])
    published = {
        (row["policy"], int(row["arrival_pct"])): (
            float(row["alloc_mean_pct"]),
            float(row["frag_of_idle_mean_pct"]),
        )
        for row in _rows(folder / PUBLISHED)
        if row["workload"] == name
    }
    holes = tuple(map(_hole, _rows(folder / NODES)))
    return Trace(name, holes, tuple(map(_shape, pods)), published)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _hole(row: Mapping[str, str]) -> Hole:
    amounts = int(row["cpu_milli"]), int(row["memory_mib"])
    return Hole(amounts, (WHOLE,) * int(row["gpu"]), row["model"])


def _shape(row: Mapping[str, str]) -> Shape:
    amounts, devices = (int(row["cpu_milli"]), int(row["memory_mib"])), int(row["num_gpu"])
    share = min(int(row["gpu_milli"]), WHOLE) if devices else WHOLE
    models = (row.get("gpu_spec") or "").split("|")
    return Shape(amounts, devices, share, frozenset(filter(None, models)))


def world(order: Iterable[Hole], pods: Iterable[Shape], policy: str) -> Snapshot:
    """Return the nodes in this order as the engine sees them, and how often each shape came.

    Memory bounds where a pod can stand, but is no part of a shape (``placement.md`` 4.1).
    """
    nodes = tuple(_node(number, hole) for number, hole in enumerate(order))
    models = sorted({node.labels[MODEL] for node in nodes})
    counts = Counter(pod._replace(amounts=(pod.amounts[0], 0)) for pod in pods)
    return Snapshot(
        now=0.0,
        flavors={m: Flavor(m, {MODEL: m}, policy=PlacementPolicy(policy)) for m in models},
        topologies={},
        nodes=nodes,
        cohorts={},
        cluster_queues={},
        workloads=(),
        shapes=tuple(Recent(pod_set_of(shape), times) for shape, times in counts.items()),
    )


def _node(number: int, hole: Hole) -> Node:
    cpu, memory = hole.amounts
    gpus = len(hole.devices)
    whole = {CPU: cpu, MEMORY: memory, PODS: SLOTS, GPU: gpus * WHOLE}  # it offers parts
    return Node(f"node-{number:04d}", {MODEL: hole.kind}, whole, devices=Devices(gpus))


def pod_set_of(shape: Shape) -> PodSet:
    """Return one pod of this shape as the engine sees it."""
    cpu, memory = shape.amounts
    models = (Expression(MODEL, Operator.IN, tuple(sorted(shape.kinds))),)
    return PodSet(
        "pod",
        1,
        {CPU: cpu, MEMORY: memory},
        affinity=(models,) if shape.kinds else (),
        device=DeviceRequest(shape.devices, shape.share) if shape.devices else None,
    )


def arrivals(trace: Trace, chance: random.Random) -> list[Shape]:
    """Return the pods in the order in which they come, drawn up to the arrival wanted.

    The last draw is judged by what it asks of one device (protocol, rule 3).
    """
    pods = list(trace.pods)
    chance.shuffle(pods)
    wanted = trace.milli * ARRIVAL // 100
    asked = sum(map(_milli, pods))
    while asked > wanted:
        asked -= _milli(pods.pop(chance.randrange(len(pods))))
    while trace.pods:
        pod = chance.choice(trace.pods)
        if asked + min(_milli(pod), pod.share) > wanted:
            break
        pods.append(pod)
        asked += _milli(pod)
    return pods


def _milli(pod: Shape) -> int:
    return pod.devices * pod.share


@dataclass(slots=True)
class Packing:
    """What one seed came to. By arrival (per cent), means over the pods that came there."""

    allocated: dict[int, float] = field(default_factory=dict)  # per cent of all GPUs
    fragmented: dict[int, float] = field(default_factory=dict)  # per cent of what is idle
    places: list[Place | None] = field(default_factory=list)
    failed_large: int = 0
    cpu_s: float = 0.0
    work: Counter[str] = field(default_factory=Counter)

    def allocated_at(self, arrived: int) -> float:
        """Return what was allocated at this arrival."""
        return _at(self.allocated, arrived)

    def fragmented_at(self, arrived: int) -> float:
        """Return the fragmented share of what was idle at this arrival."""
        return _at(self.fragmented, arrived)


def _at(figures: Mapping[int, float], arrived: int) -> float:
    """Return the figure at this arrival, or the last one before it; nothing before the first."""
    met = max((at for at in figures if at <= arrived), default=None)
    return 0.0 if met is None else figures[met]


def pack(trace: Trace, policy: str, seed: int) -> Packing:
    """Let every pod of one seed arrive. The seed orders nodes and pods, and draws pods."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, and nobody's secret
    order = list(trace.holes)
    chance.shuffle(order)
    pods = arrivals(trace, chance)
    gc.collect()
    started = time.process_time()
    packer = _Packer(trace.milli, Atlas(world(order, trace.pods, policy)))
    packing = packer.pack(pods)
    packing.cpu_s = time.process_time() - started
    return packing


class _Packer:
    """Places pods one by one and writes down how full the cluster is."""

    def __init__(self, milli: int, atlas: Atlas) -> None:
        expect(atlas, atlas.snapshot.shapes)
        self._milli, self._atlas, self._room = milli, atlas, FreeCapacity(atlas)
        self._popularity = atlas.views.popularity
        self._pod_sets: dict[Shape, PodSet] = {}
        self._fragment = sum(self._popularity.fragment(self._hole(name)) for name in atlas.nodes)
        self._arrived = self._used = 0
        self._packing = Packing()

    def _hole(self, node: str) -> Hole:
        ground = self._atlas.ground
        return ground.holes[self._room.holes[ground.numbers[node]]]

    def pack(self, pods: Iterable[Shape]) -> Packing:
        allocated, fragmented = defaultdict(list), defaultdict(list)
        for pod in pods:
            self._arrive(pod)
            arrived = round(100 * self._arrived / self._milli)
            idle = (self._milli - self._used) * self._popularity.total
            allocated[arrived].append(100 * self._used / self._milli)
            fragmented[arrived].append(100 * self._fragment / idle if idle else 0.0)
        self._packing.allocated = {at: statistics.fmean(v) for at, v in allocated.items()}
        self._packing.fragmented = {at: statistics.fmean(v) for at, v in fragmented.items()}
        self._packing.work = Counter(
            placed=sum(place is not None for place in self._packing.places),
            looked=self._atlas.ground.looked,
            fragments=self._popularity.worked_out,
        )
        return self._packing

    def _arrive(self, pod: Shape) -> None:
        self._arrived += _milli(pod)
        pod_set = self._pod_sets.get(pod)
        if pod_set is None:
            pod_set = self._pod_sets[pod] = pod_set_of(pod)
        found = assign_pod_set(self._atlas, (self._room,), pod_set, {})
        if found is not None:
            (node,) = found.nodes
            seats = found.devices.get(node, ())
            self._packing.places.append((node, seats[0] if seats else ()))
            self._stand(node, pod_set, seats)
            self._used += _milli(pod)
            return
        self._packing.places.append(None)
        if pod.devices >= _LARGE and 100 * self._arrived < _LARGE_UNTIL * self._milli:
            self._packing.failed_large += 1

    def _stand(self, node: str, pod_set: PodSet, seats: Seats) -> None:
        self._fragment -= self._popularity.fragment(self._hole(node))
        self._room.take(node, pod_set, 1, seats)
        self._fragment += self._popularity.fragment(self._hole(node))


def bench(trace: Trace, policy: str, seeds: Sequence[int] = SEEDS) -> Report:
    """Pack every seed, and the first one twice: two runs must not differ."""
    packings = {seed: pack(trace, policy, seed) for seed in seeds}
    again = pack(trace, policy, seeds[0])
    differ = again.places != packings[seeds[0]].places
    goals = [Goal("two-runs-differ", float(differ), 0)]
    runs = list(packings.values())
    if policy == "fragmentation":
        goals = [*_bars(trace, runs), *goals]
    env: dict[str, Figure] = {
        "profile": "recommended",
        "policy": policy,
        "list": trace.name,
        "nodes": len(trace.holes),
        "gpus": trace.milli // WHOLE,
        "tie": "lowest number, by the order of the seed",
        "seeds": ",".join(map(str, seeds)),
    }
    seconds = [run.cpu_s for run in runs]
    return Report(f"openb {trace.name}", env, _figures(trace, policy, packings), seconds, goals)


def _bars(trace: Trace, runs: Sequence[Packing]) -> list[Goal]:
    """Floor, published mean and large pods on the default list; the published best elsewhere."""
    if trace.name != "default":
        best = max(alloc for (_, at), (alloc, _) in trace.published.items() if at == FULL)
        return [Goal("allocated-at-100", _mean(runs, FULL), best - SLACK, at_least=True)]
    goals = []
    for at, floor in FLOORS.items():
        reached, published = _mean(runs, at), trace.published["FGD", at][0]
        goals.append(Goal(f"allocated-at-{at}-floor", reached, floor, at_least=True))
        goals.append(Goal(f"allocated-at-{at}", reached, published, at_least=True))
    goals.append(Goal("allocated-at-130-stretch", _mean(runs, 130), STRETCH, at_least=True))
    failed = max(run.failed_large for run in runs)
    return [*goals, Goal("failed-8-gpu-pods-before-80", failed, 0)]


def _mean(runs: Iterable[Packing], at: int) -> float:
    return statistics.fmean(run.allocated_at(at) for run in runs)


def _figures(trace: Trace, policy: str, packings: Mapping[int, Packing]) -> dict[str, Figure]:
    """Return ours beside the published figures, in per cent, and the work that was counted."""
    runs, rival = list(packings.values()), RIVALS[policy]
    figures: dict[str, Figure] = {}
    for at in SHOWN:
        theirs = trace.published[rival, at]
        figures[f"allocated at {at} %"] = _mean(runs, at)
        figures[f"  published, {rival}, at {at} %"] = theirs[0]
        figures[f"fragmented of idle at {at} %"] = statistics.fmean(
            run.fragmented_at(at) for run in runs
        )
        figures[f"  published fragmented, {rival}, at {at} %"] = theirs[1]
    for seed, run in packings.items():
        figures |= {f"seed {seed} at {at} %": run.allocated_at(at) for at in FLOORS}
    one = runs[0]
    figures["pods"] = len(one.places)
    figures["failed"] = sum(place is None for place in one.places)
    return figures | dict(sorted(one.work.items()))
