"""What other schedulers got wrong about victims (``placement.md`` 6, 13 to 26), one by one."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.machines import GPU
from scheduling.engine.plan import Admit, Evict, Plan
from scheduling.engine.snapshot import Preemption
from scheduling.engine.terms import ReclaimWithinCohort, WithinClusterQueue
from tests.engine.builders import RACK, RECLAIM_ANY, World, pods, required, world
from tests.engine.simulator import Simulator


def evicted(made: World | Plan) -> list[str]:
    plan = made if isinstance(made, Plan) else decide(made.build())
    return sorted(d.workload for d in plan.decisions if isinstance(d, Evict))


def on(*numbers: int, each: int = 1) -> dict[str, int]:
    return {f"h100-node-{number:02}": each for number in numbers}


def own(made: World, nominal: int = 100) -> World:
    return made.queue("cq", nominal, None, preemption=RECLAIM_ANY)


def test_13_equals_do_not_evict_each_other_without_end() -> None:
    made = own(world().nodes(3))
    for number in range(24):
        made.pending(f"job-{number:02}", "cq")
    sim = Simulator(made.build())
    sim.run()
    assert sim.evictions == []
    assert len(sim.admitted()) == 12


def test_15_a_gang_is_taken_whole_and_counts_whole() -> None:
    """One pod would do; the gang that loses less in all goes, not the one with a cheap pod."""
    made = own(world().nodes(3))
    made.running("large", "cq", pods(2, 4), on=on(1, 2), at=900.0)
    made.running("small", "cq", pods(1, 4), on=on(3), at=850.0)
    made.pending("urgent", "cq", pods(1, 4), priority=1)
    assert evicted(made) == ["small"], "150 s x 4 GPUs are less than 100 s x 8"


def test_16_who_is_leaving_is_neither_ready_nor_a_reason_for_more_victims() -> None:
    made = own(world().nodes(2))
    made.running("leaving", "cq", pods(1, 4), on=on(1), releasing=True)
    made.running("stays", "cq", pods(1, 4), on=on(2))
    made.pending("urgent", "cq", pods(1, 4), priority=1)
    assert evicted(made) == []


def test_17_no_more_victims_than_needed() -> None:
    made = own(world().nodes(10, gpus=1))
    for number in range(1, 11):
        made.running(f"job-{number:02}", "cq", on=on(number))
    made.pending("urgent", "cq", priority=1)
    assert len(evicted(made)) == 1


def test_18_what_is_idle_counts_before_anybody_is_evicted() -> None:
    made = own(world().nodes(4))
    made.running("one", "cq", pods(1, 4), on=on(1)).running("two", "cq", pods(1, 4), on=on(2))
    made.pending("urgent", "cq", pods(3, 4), priority=1)
    assert len(evicted(made)) == 1


def test_19_nobody_is_evicted_for_whom_it_does_not_help() -> None:
    made = own(world().nodes(2))
    made.running("low", "cq", pods(1, 4), on=on(1))
    made.running("high", "cq", pods(1, 4), on=on(2), priority=9)
    made.pending("urgent", "cq", pods(2, 4), priority=1)
    assert evicted(made) == []


def test_20_amounts_are_not_enough_where_a_rack_is_asked_for() -> None:
    """Four nodes would be free in two racks after the cheapest two; the rack decides who goes."""
    made = own(world().topology().nodes(4))
    made.flavor(topology="datacenter")
    for number, began in enumerate([900.0, 200.0, 890.0, 880.0], start=1):
        made.running(f"job-{number}", "cq", pods(1, 4), on=on(number), at=began)
    made.pending("urgent", "cq", pods(2, 4, topology=required(RACK)), priority=1)
    assert evicted(made) == ["job-3", "job-4"]


def test_20_no_rack_that_could_be_emptied_means_no_victim() -> None:
    made = own(world().topology().nodes(4))
    made.flavor(topology="datacenter")
    for number in range(1, 5):
        priority = 9 if number in (1, 3) else 0
        made.running(f"job-{number}", "cq", pods(1, 4), on=on(number), priority=priority)
    made.pending("urgent", "cq", pods(2, 4, topology=required(RACK)), priority=1)
    assert evicted(made) == []


def test_the_rack_in_which_less_is_lost_is_emptied() -> None:
    """The cheapest single victims share a rack; another rack is half empty already."""
    made = own(world().topology().nodes(4))
    made.flavor(topology="datacenter")
    made.running("a", "cq", pods(1, 4), on=on(1), at=900.0)
    made.running("b", "cq", pods(1, 4), on=on(2), at=899.0)
    made.running("c", "cq", pods(1, 4), on=on(3), at=850.0)
    made.pending("urgent", "cq", pods(2, 4, topology=required(RACK)), priority=1)
    assert evicted(made) == ["c"]


def test_a_gang_across_two_racks_is_taken_whole_or_not_at_all() -> None:
    made = own(world().topology().nodes(4))
    made.flavor(topology="datacenter")
    made.running("across", "cq", pods(2, 4), on=on(2, 3), at=900.0)
    made.running("a", "cq", pods(1, 4), on=on(1), at=700.0)
    made.running("d", "cq", pods(1, 4), on=on(4), at=650.0)
    made.pending("urgent", "cq", pods(2, 4, topology=required(RACK)), priority=1)
    assert evicted(made) == ["a", "across"]


def test_23_a_protected_queue_in_front_does_not_end_the_search() -> None:
    made = world().nodes(3)
    made.cohort("llm", nominal=4).queue("cq-owner", 4, preemption=RECLAIM_ANY)
    made.queue("cq-safe", 4, reclaimable=False).queue("cq-other", 4)
    made.running("safe", "cq-safe", pods(2, 4), on=on(1, 2), at=999.0)
    made.running("other-old", "cq-other", pods(1, 1), on=on(3), at=100.0)
    made.running("other", "cq-other", pods(1, 3), on=on(3), at=200.0)
    made.pending("mine", "cq-owner", pods(1, 4))
    assert evicted(made) == [], "the other queue is within its own quota"
    made.queues["cq-other"] = replace(
        made.queues["cq-other"], groups=world().queue("x", 0).queues["x"].groups
    )
    assert evicted(made) == ["other", "other-old"]


def test_24_a_gang_without_surplus_can_be_taken_by_default() -> None:
    made = own(world().nodes(2))
    made.running("gang", "cq", pods(2, 4), on=on(1, 2), min_member=2)
    made.pending("urgent", "cq", pods(1, 4), priority=1)
    assert evicted(made) == ["gang"]


def test_25_the_last_victim_is_not_skipped() -> None:
    made = own(world().nodes(1))
    for number in range(4):
        made.running(f"low-{number}", "cq", on=on(1))
    for number in range(4):
        made.pending(f"high-{number}", "cq", priority=1)
    sim = Simulator(made.build())
    sim.run()
    assert sim.admitted() == {f"high-{number}" for number in range(4)}


@pytest.mark.parametrize("reclaim", list(ReclaimWithinCohort)[1:])
def test_26_a_full_cluster_is_no_reason_not_to_look(reclaim: ReclaimWithinCohort) -> None:
    rights = Preemption(WithinClusterQueue.NEVER, reclaim)
    made = world().nodes(2).queue("cq-owner", 8, preemption=rights).queue("cq-guest", 0)
    made.running("guest", "cq-guest", pods(2, 4), on=on(1, 2))
    made.pending("mine", "cq-owner", pods(2, 4), priority=1)
    sim = Simulator(made.build())
    sim.run()
    assert sim.admitted() == {"mine"}


def test_what_victims_leave_is_kept_for_whom_they_left() -> None:
    made = own(world().nodes(1))
    made.running("low", "cq", pods(1, 4), on=on(1))
    made.pending("urgent", "cq", pods(1, 3), priority=2)
    sim = Simulator(made.build())
    sim.step()
    assert [claim.workload for claim in sim.snapshot.memory.claims] == ["urgent"]
    latest = made.pending("latest", "cq", pods(1, 4), priority=1).workloads[-1]
    sim.submit(latest)
    sim.run()
    admits = [d.workload for d in sim.plan.decisions if isinstance(d, Admit)]
    assert sim.admitted() == {"urgent"}, admits
    assert sim.snapshot.nodes[0].allocatable[GPU] == 4
