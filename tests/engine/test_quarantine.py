"""A fault of the engine stops the tree in which it shows, and nobody else."""

from scheduling.engine.cycle import decide
from scheduling.engine.plan import Admit, Hold
from scheduling.engine.quarantine import decide_soundly
from scheduling.engine.terms import BlockerCode
from tests.engine.builders import pods, world


def three_trees():
    return (
        world()
        .flavor()
        .nodes(4)
        .queue("a", 4, "one")
        .queue("b", 4, "two")
        .queue("solo", 4, None)
        .pending("wa", "a", pods(1))
        .pending("wb", "b", pods(1))
        .pending("ws", "solo", pods(1))
        .build()
    )


def admitted(plan):
    return {d.workload for d in plan.decisions if isinstance(d, Admit)}


def breaks_off_at(*queues):
    """An engine that trips over these queues while they are open."""

    def tripping(snapshot):
        if any(not snapshot.cluster_queues[name].inactive for name in queues):
            raise AssertionError(f"tripped over {queues}")
        return decide(snapshot)

    return tripping


def forbids(*workloads):
    """A law that nobody of these may start."""
    return lambda _snapshot, plan: tuple(
        f"{key} has started" for key in workloads if key in admitted(plan)
    )


def test_a_sound_plan_is_what_decide_says():
    assert decide_soundly(three_trees()).plan == decide(three_trees())


def test_a_plan_that_breaks_a_law_in_one_tree_is_decided_without_it():
    verdict = decide_soundly(three_trees(), laws=forbids("wb"))
    assert admitted(verdict.plan) == {"wa", "ws"}
    assert verdict.quarantined == {"cohort two": ("wb has started",)}
    (held,) = (d for d in verdict.plan.decisions if isinstance(d, Hold))
    assert (held.workload, held.blockers[0].code) == ("wb", BlockerCode.QUEUE_INACTIVE)
    assert held.blockers[0].facts["cause"] == "Quarantined"


def test_a_cycle_that_breaks_off_over_one_tree_is_decided_without_it():
    verdict = decide_soundly(three_trees(), breaks_off_at("solo"))
    assert admitted(verdict.plan) == {"wa", "wb"}
    assert verdict.quarantined == {"queue solo": ("AssertionError: tripped over ('solo',)",)}


def test_two_faulty_trees_are_both_left_out():
    verdict = decide_soundly(three_trees(), laws=forbids("wa", "ws"))
    assert admitted(verdict.plan) == {"wb"}
    assert set(verdict.quarantined) == {"cohort one", "queue solo"}


def test_a_cohort_and_a_queue_of_one_name_are_two_trees():
    same = (
        world()
        .flavor()
        .nodes(4)
        .queue("a", 4, "x")
        .queue("x", 4, None)
        .pending("wa", "a", pods(1))
        .pending("wx", "x", pods(1))
        .build()
    )
    verdict = decide_soundly(same, laws=forbids("wx"))
    assert (admitted(verdict.plan), set(verdict.quarantined)) == ({"wa"}, {"queue x"})


def test_a_fault_that_no_tree_shows_by_itself_lets_nothing_be_decided():
    def together(_snapshot, plan):
        return ("both",) if {"wa", "wb"} <= admitted(plan) else ()

    verdict = decide_soundly(three_trees(), laws=together)
    assert (verdict.plan, verdict.faults, verdict.quarantined) == (None, ("both",), {})


def test_a_fault_that_stays_when_the_guilty_are_out_lets_nothing_be_decided():
    verdict = decide_soundly(three_trees(), laws=lambda *_: ("always",))
    assert verdict.plan is None
    assert verdict.faults == ("always",)
