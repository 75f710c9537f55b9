"""Local queues of one ClusterQueue, ordered by what they have used."""

from dataclasses import replace
from math import inf

import pytest

from scheduling.engine.cycle import advance, decide, plan
from scheduling.engine.decay import Consumed, UsageDecay
from scheduling.engine.doors import Doors
from scheduling.engine.machines import CPU, GPU, MEMORY
from scheduling.engine.plan import Admit, Evict
from scheduling.engine.queue_rules import LocalQueue
from scheduling.engine.snapshot import Memory, Preemption, Snapshot
from scheduling.engine.state import State
from scheduling.engine.terms import WithinClusterQueue
from scheduling.engine.tree import quota_tree
from tests.engine.builders import GI, pods, world

HOUR = 3600.0
NODE = {"h100-node-01": 1}


def team(
    *works: tuple[str, str, int],
    used: dict[str, float] | None = None,
    running: tuple[tuple[str, str], ...] = (),
    weights: dict[str, float] | None = None,
    gpus: int = 4,
    **changes: object,
) -> Snapshot:
    """One queue with doors ``vision`` and ``speech``; works are (key, door, priority)."""
    made = world().nodes(1, gpus).queue("cq", gpus, None, usage_based=True, **changes)
    for key, door in running:
        made.running(key, "cq", on=NODE, local_queue=door)
    for key, door, priority in works:
        made.pending(key, "cq", priority=priority, local_queue=door)
    doors = ("vision", "speech")
    weight = weights or {}
    past = {name: Consumed({GPU: n}, {}, 1000.0) for name, n in (used or {}).items()}
    return replace(
        made.build(),
        local_queues={n: LocalQueue(n, "cq", fair_weight=weight.get(n, 1.0)) for n in doors},
        usage_decay=UsageDecay(half_life_s=HOUR),
        memory=Memory(consumption=past),
    )


def order(snapshot: Snapshot) -> list[str]:
    plan = decide(snapshot)
    return [d.workload for d in plan.decisions if isinstance(d, Admit)]


def test_who_has_used_less_goes_before_priority() -> None:
    works = (("v", "vision", 9), ("s", "speech", 0))
    snapshot = team(*works, used={"vision": 2.0, "speech": 1.0}, gpus=1)
    assert order(snapshot) == ["s"]
    queue = replace(snapshot.cluster_queues["cq"], priority_first=True)
    assert order(replace(snapshot, cluster_queues={"cq": queue})) == ["v"]
    queue = replace(snapshot.cluster_queues["cq"], usage_based=False)
    assert order(replace(snapshot, cluster_queues={"cq": queue})) == ["v"]


def test_with_priority_first_usage_decides_among_equals() -> None:
    works = (("v", "vision", 1), ("s", "speech", 1), ("low", "speech", 0))
    snapshot = team(*works, used={"vision": 2.0}, gpus=2, priority_first=True)
    assert order(snapshot) == ["s", "v"]


def test_two_doors_that_used_the_same_take_turns_within_one_cycle() -> None:
    works = [(f"v{n}", "vision", 0) for n in range(4)] + [(f"s{n}", "speech", 0) for n in range(4)]
    assert order(team(*works)) == ["v0", "s0", "v1", "s1"]


def test_a_door_of_weight_two_gets_twice_as_much() -> None:
    works = [(f"s{n}", "speech", 0) for n in range(6)] + [(f"v{n}", "vision", 0) for n in range(6)]
    names = order(team(*works, weights={"vision": 2.0}, gpus=6))
    assert sorted(name[0] for name in names) == ["s", "s", "v", "v", "v", "v"]


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_a_door_without_weight_comes_last(weight) -> None:
    works = (("v", "vision", 9), ("s", "speech", 0))
    snapshot = team(*works, used={"speech": 50.0}, weights={"vision": weight}, gpus=1)
    assert order(snapshot) == ["s"]


def test_the_figure_given_with_the_door_holds_where_nobody_remembers_usage() -> None:
    snapshot = team(("v", "vision", 9), ("s", "speech", 0), gpus=1)
    given = {"vision": LocalQueue("vision", "cq", 3.0), "speech": LocalQueue("speech", "cq", 2.0)}
    assert order(replace(snapshot, usage_decay=None, local_queues=given)) == ["s"]


def test_usage_fades_towards_what_is_held() -> None:
    """Eight GPUs busy for one half-life, from nothing: four (``admission.md`` 3.6)."""
    snapshot = team(running=(("r1", "vision"), ("r2", "vision")))
    memory = decide(snapshot).memory
    assert memory.consumption["vision"] == Consumed({}, {GPU: 2}, 1000.0)
    later = replace(snapshot, memory=memory, now=1000.0 + HOUR, workloads=())
    after = decide(later).memory.consumption["vision"]
    assert after == Consumed({GPU: 1.0}, {}, 1000.0 + HOUR)


def test_work_that_starts_counts_at_once_and_stays_counted() -> None:
    """One GPU, five minutes of an hour's half-life: 0.449 / 8."""
    plan = decide(team(("v", "vision", 0)))
    used = plan.memory.consumption["vision"]
    assert used.held == {GPU: 1}
    assert used.amounts[GPU] == pytest.approx(1 - 0.5 ** (1 / 12))


def test_bytes_of_memory_do_not_outweigh_gpus() -> None:
    made = world().queue("cq", 8, None, cpu=64, memory=512, usage_based=True)
    past = {
        "vision": Consumed({GPU: 4.0}, {}, 1000.0),  # half of the GPUs
        "speech": Consumed({MEMORY: 128.0 * GI, CPU: 6400.0}, {}, 1000.0),  # a quarter, a tenth
    }
    snapshot = replace(
        made.build(),
        local_queues={name: LocalQueue(name, "cq") for name in past},
        usage_decay=UsageDecay(),
    )
    doors = Doors(snapshot, quota_tree(snapshot), past)
    doors.open(1000.0)
    assert doors.figure("cq", "vision") == pytest.approx(0.5)
    assert doors.figure("cq", "speech") == pytest.approx(0.35)
    assert doors.figure("cq", "unknown") == 0.0
    gpu_only = replace(snapshot, usage_decay=UsageDecay(weights={MEMORY: 0.0, CPU: 0.0}))
    only = Doors(gpu_only, quota_tree(gpu_only), past)
    only.open(1000.0)
    assert only.figure("cq", "speech") == 0.0
    weightless = {"vision": LocalQueue("vision", "cq", fair_weight=0.0)}
    none = replace(snapshot, local_queues=weightless)
    assert Doors(none, quota_tree(none), past).figure("cq", "vision") == inf


def test_among_ones_own_victims_the_door_that_used_more_gives_first() -> None:
    rights = Preemption(within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY)
    running = (("s", "speech"), ("v", "vision"))
    snapshot = team(
        ("new", "speech", 5),
        running=running,
        used={"speech": 3.0, "vision": 1.0},
        gpus=2,
        preemption=rights,
    )
    evicted = [d.workload for d in decide(snapshot).decisions if isinstance(d, Evict)]
    assert evicted == ["s"]


def test_it_has_no_effect_between_queues() -> None:
    made = world().nodes(1, 1).cohort("llm", nominal=1)
    made.queue("cq-a", usage_based=True).queue("cq-b", usage_based=True)
    made.pending("a", "cq-a", local_queue="a").pending("b", "cq-b", local_queue="b")
    used = {"a": Consumed({GPU: 5.0}, {}, 1000.0)}
    snapshot = replace(
        made.build(),
        local_queues={"a": LocalQueue("a", "cq-a"), "b": LocalQueue("b", "cq-b")},
        usage_decay=UsageDecay(),
        memory=Memory(consumption=used),
    )
    assert order(snapshot) == ["a"]


def test_positions_in_the_line_follow_usage() -> None:
    snapshot = team(
        ("v", "vision", 0),
        ("s", "speech", 0),
        used={"vision": 1.0},
        running=(("r", "vision"),),
        gpus=1,
    )
    holds = {d.workload: d.position for d in decide(snapshot).decisions}
    assert holds == {"s": 1, "v": 2}


def test_a_kept_state_remembers_what_a_fresh_one_does() -> None:
    works = [(f"v{n}", "vision", n % 2) for n in range(5)] + [("s", "speech", 0)]
    snapshot = team(*works, used={"vision": 1.0}, gpus=2)
    kept = State(snapshot)
    for step in range(4):
        now = 1000.0 + 600.0 * step
        fresh = decide(replace(snapshot, now=now))
        desk = advance(kept, now)
        assert replace(plan(kept, desk), work=fresh.work) == fresh
        gone = next(key for key, w in kept.workloads.items() if w.admission)
        kept.drop(gone)
        snapshot = kept.snapshot()


def test_pods_without_door_come_first_for_they_have_used_nothing() -> None:
    snapshot = team(("v", "vision", 9), ("direct", "", 0), used={"vision": 1.0}, gpus=1)
    assert order(snapshot) == ["direct"]
    assert pods().count == 1
