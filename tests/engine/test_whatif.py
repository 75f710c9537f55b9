"""An edit is shown before it is saved: who starts, who goes, who waits because of it."""

from scheduling.engine.snapshot import Snapshot
from scheduling.engine.whatif import Difference, what_if
from tests.engine.builders import H100, RECLAIM_ANY, World, pods, world

NODE = {"h100-node-01": 1}


def shared_node(**nominal: int) -> World:
    """Two queues on one node of 4 GPUs; ``lender`` may take everything back."""
    made = world().nodes(1).cohort("llm")
    for name, gpus in nominal.items():
        made.queue(name, gpus, "llm", preemption=RECLAIM_ANY)
    return made


def test_equal_worlds_do_not_differ() -> None:
    made = shared_node(a=2, b=2).pending("job", "a", gpus=2)
    assert what_if(made.build(), made.build()) == Difference()


def test_more_quota_starts_what_waited() -> None:
    before = shared_node(a=1).pending("job", "a", gpus=2)
    after = shared_node(a=2).pending("job", "a", gpus=2)
    assert what_if(before.build(), after.build()) == Difference(starts=("job",))
    assert what_if(after.build(), before.build()) == Difference(waits=("job",))


def test_quota_given_to_one_queue_evicts_who_borrowed_it_from_another() -> None:
    def with_quota(a: int, b: int) -> World:
        made = shared_node(a=a, b=b)
        for number in range(4):
            made.running(f"a-{number}", "a", on=NODE)
        return made.pending("urgent", "b")

    before, after = with_quota(4, 0).build(), with_quota(3, 1).build()
    there = what_if(before, after)
    assert (there.evicted, there.spared) == (("a-3",), ())
    back = what_if(after, before)
    assert (back.evicted, back.spared) == ((), ("a-3",))


def test_surplus_that_an_edit_would_take_is_told_with_pods_and_for_whom() -> None:
    def with_quota(a: int, b: int) -> World:
        made = shared_node(a=a, b=b)
        made.running("gang", "a", pods(4), on={"h100-node-01": 4}, min_member=1)
        return made.pending("urgent", "b", gpus=2)

    found = what_if(with_quota(4, 0).build(), with_quota(2, 2).build())
    assert (found.shrunk, found.evicted, found.starts) == (("gang",), (), ())
    (loss,) = found.evictions
    assert (loss.workload, loss.preemptor, loss.pods) == ("gang", "urgent", 2)
    assert loss.lost_gpu_hours > 0


def test_a_loan_that_the_edit_cuts_is_told_with_both_amounts() -> None:
    def with_quota(a: int, b: int) -> World:
        made = shared_node(a=a, b=b)
        for number in range(4):
            made.running(f"a-{number}", "a", on=NODE)
        return made.pending("urgent", "b", gpus=2)

    before, after = with_quota(1, 1).build(), with_quota(1, 3).build()
    (loan,) = what_if(before, after).loans
    assert (loan.queue, loan.column, loan.before, loan.after) == ("a", H100, 3, 1)
    assert what_if(before, before).loans == ()


def test_a_borrower_that_leaves_its_cohort_gives_nothing_back_by_that() -> None:
    """What it holds above its own is debt from then on; of a loan that ends nothing is said."""

    def within(cohort: str | None) -> Snapshot:
        made = world().nodes(1).queue("a", 1, cohort).queue("b", 3)
        return made.running("big", "a", gpus=4, on=NODE).build()

    assert what_if(within("llm"), within(None)).loans == ()
    (loan,) = what_if(within(None), within("llm")).loans
    assert (loan.before, loan.after) == (0, 3)
