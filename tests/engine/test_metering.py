"""Who holds GPUs on which ground, and whose loan it is."""

from hypothesis import HealthCheck, given, settings

from scheduling.engine.loans import apportion, lent
from scheduling.engine.machines import CPU, GPU
from scheduling.engine.metering import Share, admitted_ledger, split
from scheduling.engine.terms import Holding
from scheduling.engine.tree import cohort_key, queue_key
from scheduling.engine.usage import is_gpu
from tests.engine.builders import H100, PodSet, three_teams, two_teams, world
from tests.engine.simulator import Simulator
from tests.engine.strategies import worlds

NODE = {"h100-node-01": 1}


def share(workload: str, amount: int, holding: Holding, lender: str = "") -> Share:
    flavor = "h100-sxm" if holding is not Holding.UNMANAGED or lender == "" else ""
    return Share(workload, flavor, GPU, amount, holding, lender)


def test_the_article_month_borrows_one_each_from_ia_and_plataforma() -> None:
    made = three_teams().running("old", "cq-datos", gpus=2, at=1.0)
    made.running("new", "cq-datos", gpus=2, at=2.0)
    assert split(made.build()) == (
        share("new", 1, Holding.BORROWED, "cq-ia"),
        share("new", 1, Holding.BORROWED, "cq-plataforma"),
        share("old", 2, Holding.NOMINAL),
    )


def test_one_workload_may_be_part_own_and_part_loan() -> None:
    made = two_teams().running("big", "cq-team-datos", gpus=18)
    assert split(made.build()) == (
        share("big", 2, Holding.BORROWED, "cq-team-ia"),
        share("big", 16, Holding.NOMINAL),
    )


def test_idle_queues_lend_before_the_cohort_does() -> None:
    made = world().cohort("llm", nominal=4).queue("a", 0).queue("b", 2)
    made.running("x", "a", gpus=5)
    assert split(made.build()) == (
        share("x", 2, Holding.BORROWED, "b"),
        share("x", 3, Holding.BORROWED, "llm"),
    )


def test_a_loan_without_lender_is_debt() -> None:
    made = world().queue("a", 1, None).running("x", "a", gpus=3)
    assert split(made.build()) == (
        share("x", 2, Holding.BORROWED),
        share("x", 1, Holding.NOMINAL),
    )


def test_work_outside_every_queue_is_shown_by_the_flavor_of_its_node() -> None:
    made = world().nodes(1).running("serve", None, gpus=4, on=NODE)
    assert split(made.build()) == (share("serve", 4, Holding.UNMANAGED),)


def test_only_gpus_are_metered() -> None:
    made = world().queue("a", 1, None, cpu=4).running("x", "a", PodSet("main", 1, {CPU: 1}))
    assert split(made.build()) == ()
    assert [is_gpu(r) for r in ("nvidia.com/mig-1g.10gb", "amd.com/gpu", "memory")] == [
        True,
        True,
        False,
    ]


def test_largest_remainder_breaks_ties_by_name() -> None:
    assert apportion(2, {"c": 1, "a": 1, "b": 1}) == {"c": 0, "a": 1, "b": 1}
    assert apportion(5, {"a": 8, "b": 4}) == {"a": 3, "b": 2}
    assert apportion(0, {}) == {}


def test_lending_limits_bound_what_is_lent() -> None:
    ledger = admitted_ledger(two_teams().running("x", "cq-team-datos", gpus=20).build())
    assert lent(ledger, cohort_key("llm"), H100) == {queue_key("cq-team-ia"): 4}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(snapshot=worlds())
def test_the_shares_of_a_workload_add_up_to_what_it_holds(snapshot) -> None:
    sim = Simulator(snapshot)
    sim.run()
    held = {w.key: sum(p.count * p.requests.get(GPU, 0) for p in w.pod_sets)
            for w in sim.snapshot.workloads if w.admission}  # fmt: skip
    shared = dict.fromkeys(held, 0)
    for part in split(sim.snapshot):
        assert part.amount > 0
        shared[part.workload] += part.amount
    assert shared == held
