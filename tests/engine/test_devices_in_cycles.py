"""What holds in every world whose nodes tell their devices apart: crowded, with evictions."""

from dataclasses import replace
from random import Random

from scheduling.engine.books import Books
from scheduling.engine.cycle import decide
from scheduling.engine.machines import GPU, Devices, Node
from scheduling.engine.plan import Admit
from scheduling.engine.snapshot import DeviceRequest, PodSet, Snapshot
from scheduling.engine.standing import standing
from scheduling.engine.state import State
from scheduling.engine.terms import DeviceLocality
from tests.engine.laws import laws
from tests.engine.rich import Setting, rich_world
from tests.engine.simulator import Simulator

GIB = 1024


def told(node: Node, random: Random) -> Node:
    """Let a node tell its devices apart, in most worlds; some are shared in turns."""
    count = node.allocatable.get(GPU, 0)
    if not count or random.randrange(5) == 0:
        return node
    half = count // 2
    islands = random.choice([(), (tuple(range(half)), tuple(range(half, count)))])
    turns, memory = random.choice([1, 1, 1, 2]), random.choice([None, 24 * GIB])
    devices = Devices(count, memory, turns, tuple(i for i in islands if i))
    return replace(node, allocatable={**node.allocatable, GPU: count * turns}, devices=devices)


def asking(pod_set: PodSet, random: Random) -> PodSet:
    gpus = pod_set.requests.get(GPU, 0)
    if not gpus or random.randrange(3) == 0:
        return pod_set
    memory = random.choice([0, 8 * GIB, 16 * GIB])
    share = random.choice([1000, 500, 300, 0]) if memory else 1000
    return replace(
        pod_set, device=DeviceRequest(gpus, share, memory, random.choice(list(DeviceLocality)))
    )


def device_world(random: Random) -> Snapshot:
    snapshot = rich_world(random, Setting(contended=random.randrange(2) == 0))
    work = tuple(
        replace(w, pod_sets=tuple(asking(p, random) for p in w.pod_sets))
        for w in snapshot.workloads
    )
    nodes = tuple(told(node, random) for node in snapshot.nodes)
    return replace(snapshot, nodes=nodes, workloads=work)


def busy(random: Random) -> Simulator:
    """Work comes and goes; the simulator holds every plan to the laws, devices among them."""
    snapshot = device_world(random)
    sim = Simulator(replace(snapshot, workloads=()), random.randint(1, 3))
    waiting = list(snapshot.workloads)
    for _ in range(15):
        if waiting and random.randrange(3):
            sim.submit(waiting.pop(0))
        if sim.admitted() and random.randrange(5) == 0:
            sim.finish(random.choice(sorted(sim.admitted())))
        sim.step()
    sim.submit(*waiting)
    return sim


def check_no_device_is_promised_twice(random: Random) -> None:
    busy(random).step()


def check_departures_give_everything_back(random: Random) -> None:
    """When all has left, every hole is as it was, on the devices as well."""
    sim = busy(random)
    state = State(sim.snapshot)
    for key in sorted(state.workloads):
        state.drop(key)
    for side in state.books.both:
        assert list(side.room.holes) == list(state.atlas.ground.empty)


def check_a_trial_leaves_no_trace(random: Random) -> None:
    snapshot = busy(random).snapshot
    state = State(snapshot)
    before = [list(side.room.holes) for side in state.books.both]
    books: Books = state.books
    with books.trial():
        for workload in snapshot.workloads:
            if workload.admission and not workload.releasing:
                books.leave(workload, standing(workload))
    assert [list(side.room.holes) for side in books.both] == before


def check_equal_input_gives_equal_devices(random: Random) -> None:
    snapshot = busy(random).snapshot
    nodes, work = list(snapshot.nodes), list(snapshot.workloads)
    random.shuffle(nodes)
    random.shuffle(work)
    turned = replace(snapshot, nodes=tuple(nodes), workloads=tuple(work))
    assert admits(decide(snapshot)) == admits(decide(snapshot)) == admits(decide(turned))


def admits(plan: object) -> list[Admit]:
    return [d for d in plan.decisions if isinstance(d, Admit)]


test_law, test_law_in_many_worlds = laws(
    check_no_device_is_promised_twice,
    check_departures_give_everything_back,
    check_a_trial_leaves_no_trace,
    check_equal_input_gives_equal_devices,
    few=12,
    many=1000,
)
