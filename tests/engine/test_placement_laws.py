"""Laws of standing on nodes, in crowded halls (``yards.py``), restated from the rules alone."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random

from scheduling.engine.codec import encode_plan
from scheduling.engine.cycle import advance, decide, plan
from scheduling.engine.entries import find_entry
from scheduling.engine.machines import GPU, PODS, PODS_PER_NODE, WHOLE, Devices, Node
from scheduling.engine.plan import Admit
from scheduling.engine.snapshot import Assignment, PodSet, Snapshot, Workload
from scheduling.engine.state import State
from scheduling.engine.terms import DeviceLocality, TopologyMode
from scheduling.engine.tree import QuotaKey
from tests.engine.laws import laws
from tests.engine.simulator import Simulator
from tests.engine.yards import LEVELS, yard


def busy(random: Random) -> Simulator:
    """Return a hall in the middle of things: some run, some leave, a node may have failed."""
    snapshot = yard(random)
    waiting = list(snapshot.workloads)
    sim = Simulator(replace(snapshot, workloads=()), random.randint(1, 3))
    for _ in range(random.randint(1, 5)):
        for _ in range(min(len(waiting), random.randint(0, 6))):
            sim.submit(waiting.pop(0))
        if sim.admitted() and random.randrange(3) == 0:
            sim.finish(random.choice(sorted(sim.admitted())))
        sim.step()
    sim.submit(*waiting)
    if random.randrange(4) == 0:
        lost = random.randrange(len(snapshot.nodes))
        nodes = tuple(
            replace(n, ready=n.ready and i != lost) for i, n in enumerate(snapshot.nodes)
        )
        sim.snapshot = replace(sim.snapshot, nodes=nodes)
    return sim


def check_nothing_is_taken_twice(random: Random) -> None:
    """After every step, what stands on a node is no more than the node has."""
    sim = busy(random)
    for _ in range(3):
        sim.step()
        assert list(overloaded(sim.snapshot)) == []
        assert list(crowded_devices(sim.snapshot)) == []


def overloaded(snapshot: Snapshot) -> Iterator[str]:
    load: Counter[tuple[str, str]] = Counter()
    for _, pod_set, assignment in standing(snapshot):
        for node, pods in assignment.nodes.items():
            load[node, PODS] += pods
            for resource, amount in pod_set.requests.items():
                load[node, resource] += amount * pods
    nodes = {node.name: node for node in snapshot.nodes}
    for (name, resource), amount in sorted(load.items()):
        if amount > left(nodes[name], resource):
            yield f"{name}: {amount} {resource}"


def crowded_devices(snapshot: Snapshot) -> Iterator[str]:
    """Turns and parts of each device add up to no more than one, its memory to what it has."""
    nodes = {node.name: node for node in snapshot.nodes}
    time: Counter[tuple[str, int]] = Counter()
    memory: Counter[tuple[str, int]] = Counter()
    for work, pod_set, assignment in standing(snapshot):
        for name, seats in assignment.devices.items():
            devices = nodes[name].devices
            assert devices is not None
            for seat in seats:
                if not fits_island(pod_set, devices, seat):
                    yield f"{work.key} stands on {seat} of {name}"
                for device in seat:
                    time[name, device] += time_of(pod_set, devices)
                    memory[name, device] += pod_set.device.memory if pod_set.device else 0
    for (name, device), taken in time.items():
        most = nodes[name].devices.memory
        if taken > 1 or (most is not None and memory[name, device] > most):
            yield f"{name}: {taken} of device {device}, {memory[name, device]} MiB"


def time_of(pod_set: PodSet, devices: Devices) -> Fraction:
    """The part of a device's time that one pod takes: a turn, its share, or as its memory is."""
    asked = pod_set.device
    if asked is not None and asked.share not in (0, WHOLE):
        return Fraction(asked.share, WHOLE)
    if asked is None or asked.share or devices.replicas > 1:
        return Fraction(1, devices.replicas)
    if devices.memory is None:
        return Fraction(1)
    return Fraction(asked.memory * WHOLE // devices.memory, WHOLE)


def fits_island(pod_set: PodSet, devices: Devices, seat: tuple[int, ...]) -> bool:
    """Each device once, as many as asked, and in one island where that is required."""
    count = pod_set.device.count if pod_set.device else pod_set.requests[GPU]
    if len(set(seat)) != len(seat) or len(seat) != count:
        return False
    require = pod_set.device is not None and pod_set.device.locality is DeviceLocality.REQUIRE
    islands = devices.islands or (tuple(range(devices.count)),)
    return not require or any(set(seat) <= set(island) for island in islands)


def left(node: Node, resource: str) -> int:
    whole = {PODS: PODS_PER_NODE, **node.allocatable}
    return whole.get(resource, 0) - node.unmanaged.get(resource, 0)


def standing_of(work: Workload) -> tuple[Assignment, ...]:
    return work.admission.assignments if work.admission else ()


def standing(snapshot: Snapshot) -> Iterator[tuple[Workload, PodSet, Assignment]]:
    for work in snapshot.workloads:
        sets = {pod_set.name: pod_set for pod_set in work.pod_sets}
        for assignment in standing_of(work):
            yield work, sets[assignment.pod_set], assignment


def check_gangs_stand_as_they_asked(random: Random) -> None:
    """Whole or with what contents them; on nodes that suit; in one domain where required."""
    sim = busy(random)
    known = {work.key: work for work in sim.snapshot.workloads}
    for decision in decide(sim.snapshot).decisions:
        if isinstance(decision, Admit):
            work = known[decision.workload]
            counts = Counter({one.pod_set: one.count for one in decision.assignments})
            assert_enough(work, counts)
            sets = {pod_set.name: pod_set for pod_set in work.pod_sets}
            for one in decision.assignments:
                pod_set = sets[one.pod_set]
                assert sum(one.nodes.values()) == (one.count if machines(sim.snapshot, one) else 0)
                assert_suits(sim.snapshot, pod_set, one)


def assert_enough(work: Workload, pods: Mapping[str, int]) -> None:
    """Every minimum of a gang at once: its own, each role's, whole parts and enough of them."""
    for one in work.pod_sets:
        assert pods[one.name] <= one.count
        least = one.count if work.min_member is None else one.role_minimum or 0
        if one.min_count is not None:
            least = one.min_count
        assert pods[one.name] >= least
        if one.subgroups is not None:
            assert pods[one.name] % one.subgroups.size == 0
            assert pods[one.name] >= one.subgroups.minimum * one.subgroups.size
    assert sum(pods.values()) >= (work.min_member or 0)


def check_no_gang_stands_below_its_minimum(random: Random) -> None:
    """Not between one and one too few: after any step, whatever was taken or lost its quota."""
    sim = busy(random)
    for _ in range(3):
        sim.step()
        for work in sim.snapshot.workloads:
            if work.admission is not None and not work.releasing and not work.part_of:
                assert_enough(work, Counter({a.pod_set: a.count for a in standing_of(work)}))


def machines(snapshot: Snapshot, assignment: Assignment) -> bool:
    """Whether there are nodes of these flavors at all; else quota alone decides."""
    kinds = set(assignment.flavors.values())
    return any(not kinds or node.labels["kind"] in kinds for node in snapshot.nodes)


def assert_suits(snapshot: Snapshot, pod_set: PodSet, assignment: Assignment) -> None:
    nodes = [node for node in snapshot.nodes if node.name in assignment.nodes]
    allowed = {(t.key, t.value) for t in pod_set.tolerations}
    for node in nodes:
        assert node.ready
        assert node.schedulable
        assert {(t.key, t.value) for t in node.taints} <= allowed
        assert pod_set.node_selector.items() <= node.labels.items()
        assert set(assignment.flavors.values()) <= {node.labels["kind"]}
    request = pod_set.topology
    if request is not None and request.mode is TopologyMode.REQUIRED:
        assert len({path(node, str(request.level)) for node in nodes}) <= 1
    for layer in request.layers if request else ():
        per: Counter[tuple[str, ...]] = Counter()
        for node in nodes:
            per[path(node, layer.level)] += assignment.nodes[node.name]
        assert all(pods % layer.size == 0 for pods in per.values())


def path(node: Node, level: str) -> tuple[str, ...]:
    return tuple(node.labels[upper] for upper in LEVELS[: LEVELS.index(level) + 1])


def check_an_attempt_leaves_every_counter(random: Random) -> None:
    """Whoever looks for a way in, and finds one or none, has changed nothing."""
    state = State(busy(random).snapshot)
    before = counters(state)
    for key in sorted(k for k, w in state.workloads.items() if w.admission is None):
        claim = state.claims.lift(key)
        lifted = counters(state)
        find_entry(state, state.asking(state.workloads[key]), claim, ())
        assert counters(state) == lifted, key
        if claim is not None:
            state.claims.keep(claim)
    assert counters(state) == before


def counters(state: State) -> dict[object, object]:
    """Everything that the books count: free room on every node, use of every column."""
    books, found = state.books, {}
    resources = sorted({r for node in state.platform.nodes for r in node.allocatable} | {PODS})
    for name, side in (("now", books.now), ("soon", books.soon)):
        for node in state.platform.nodes:
            for resource in resources:
                found[name, node.name, resource] = side.room.free(node.name, resource)
            found[name, node.name, "devices"] = side.room.spare(node.name)
        for key in side.ledger.nodes:
            found |= columns(name, side.ledger, key)
    for key in books.staying.nodes:
        found |= columns("staying", books.staying, key)
    return found


def columns(name: str, ledger, key: QuotaKey) -> dict[object, object]:
    return {(name, key, fr, "used"): ledger.used(key, fr) for fr in sorted(ledger.columns())} | {
        (name, key, fr, "available"): ledger.available(key, fr) for fr in sorted(ledger.columns())
    }


def check_a_kept_state_decides_like_a_fresh_one(random: Random) -> None:
    """What a cycle leaves behind in its state is what its decisions say, and nothing else."""
    snapshot = busy(random).snapshot
    state = State(snapshot)
    advance(state, snapshot.now)
    again = state.snapshot()
    fresh = State(again)
    assert counters(state) == counters(fresh)
    kept = plan(state, advance(state, again.now))
    renewed = plan(fresh, advance(fresh, again.now))
    assert encode_plan(replace(kept, work={})) == encode_plan(replace(renewed, work={}))


def check_equal_input_equal_placement(random: Random) -> None:
    """Decide twice, and once on everything in another order."""
    snapshot = busy(random).snapshot
    first = encode_plan(decide(snapshot))
    assert encode_plan(decide(snapshot)) == first
    turned = replace(
        snapshot,
        nodes=tuple(random.sample(snapshot.nodes, len(snapshot.nodes))),
        workloads=tuple(random.sample(snapshot.workloads, len(snapshot.workloads))),
        flavors=dict(reversed(snapshot.flavors.items())),
        cluster_queues=dict(reversed(snapshot.cluster_queues.items())),
    )
    assert encode_plan(decide(turned)) == first


test_law, test_law_in_many_worlds = laws(
    check_nothing_is_taken_twice,
    check_gangs_stand_as_they_asked,
    check_no_gang_stands_below_its_minimum,
    check_an_attempt_leaves_every_counter,
    check_a_kept_state_decides_like_a_fresh_one,
    check_equal_input_equal_placement,
    few=12,
    many=2000,
)
