"""Resource transformations: what quota counts instead of, or beside, what pods request (K20)."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine.cycle import decide
from scheduling.engine.feasibility import check_workload
from scheduling.engine.invariants import violations
from scheduling.engine.kueue.cycle import HeadOutcome, decide_heads
from scheduling.engine.machines import CPU, GPU
from scheduling.engine.metering import split
from scheduling.engine.plan import Admit, Hold
from scheduling.engine.profile import Profile
from scheduling.engine.snapshot import FlavorQuotas, Quota, ResourceGroup, Workload
from scheduling.engine.terms import BlockerCode, Holding
from scheduling.engine.transformations import (
    Strategy,
    Transformation,
    charges,
    charges_or_none,
    table,
)
from tests.engine.builders import World, pods, world
from tests.engine.simulator import Simulator

H100, A100, UNITS = "example.com/h100", "example.com/a100", "gpu-units"
MIG3, MIG1 = "nvidia.com/mig-3g.40gb", "nvidia.com/mig-1g.10gb"
F = Fraction


def rule(resource: str, *, keep: bool = True, by: str = "", **outputs: F | int) -> Transformation:
    strategy = Strategy.RETAIN if keep else Strategy.REPLACE
    named = {name.replace("_", "-"): F(factor) for name, factor in outputs.items()}
    return Transformation(resource, named, strategy, by)


@pytest.mark.parametrize(
    ("rules", "requests", "expected"),
    [
        ([], {GPU: 2}, {GPU: 2}),
        ([rule(GPU, credits=3)], {GPU: 2}, {GPU: 2, "credits": 6}),
        ([rule(GPU, keep=False, credits=3)], {GPU: 2}, {"credits": 6}),
        ([rule(GPU, keep=False)], {GPU: 2, CPU: 500}, {CPU: 500}),  # charged nothing
        ([rule(GPU, credits=3)], {CPU: 500}, {CPU: 500}),
        # factors are of cores, requests of thousandths
        ([rule(CPU, keep=False, credits=2)], {CPU: 1500}, {"credits": 3}),
        ([rule(GPU, cpu=2)], {GPU: 1, CPU: 1000}, {GPU: 1, CPU: 3000}),
        # parts are rounded up, once, at the end
        ([rule(GPU, keep=False, credits=F(1, 3))], {GPU: 1}, {"credits": 1}),
        ([rule(GPU, keep=False, credits=F(1, 3))], {GPU: 3}, {"credits": 1}),
        ([rule(GPU, keep=False, credits=F(1, 3))], {GPU: 4}, {"credits": 2}),
        (
            [rule("a", keep=False, credits=F(1, 2)), rule("b", keep=False, credits=F(1, 2))],
            {"a": 1, "b": 1},
            {"credits": 1},
        ),
        # an allowance: eight cores come with each GPU
        ([rule(GPU, cpu=-8)], {GPU: 1, CPU: 12000}, {GPU: 1, CPU: 4000}),
        ([rule(GPU, cpu=-8)], {GPU: 1, CPU: 3000}, {GPU: 1}),  # never below zero
        # so much for each of another resource
        ([rule("memory", by=GPU, credits=F(1, 1024))], {"memory": 4096, GPU: 2},
         {"memory": 4096, GPU: 2, "credits": 8}),
        ([rule(GPU, by=CPU, credits=1)], {GPU: 2, CPU: 1500}, {GPU: 2, CPU: 1500, "credits": 3}),
        ([rule(GPU, by="none", credits=1)], {GPU: 2}, {GPU: 2}),
        # no output is an input again
        ([rule("a", keep=False, b=2), rule("b", keep=False, c=5)], {"a": 1, "b": 1},
         {"b": 2, "c": 5}),
        ([rule(GPU, keep=False, credits=2**40)], {GPU: 2**40}, {"credits": 2**80}),
    ],
)  # fmt: skip
def test_charges_of_one_pod(rules, requests, expected):
    assert charges(requests, table(rules)) == expected


def test_the_order_of_rules_and_requests_means_nothing():
    rules = [rule("a", x=F(1, 3)), rule("b", keep=False, x=F(1, 3), y=-1), rule("c", y=2)]
    requests = {"a": 1, "b": 1, "c": 1}
    backwards = dict(reversed(requests.items()))
    assert charges(requests, table(rules)) == charges(backwards, table(reversed(rules)))


def test_two_rules_for_one_input_are_refused():
    with pytest.raises(ValueError, match="transformed twice"):
        table([rule(GPU, x=1), rule(GPU, y=1)])


def test_work_that_no_rule_touches_is_charged_as_it_requests():
    assert charges_or_none({CPU: 1}, table([rule(GPU, x=1)])) is None


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 50)),
    st.dictionaries(st.sampled_from("xyz"), st.fractions(-3, 3), max_size=3),
    st.sampled_from(Strategy),
)
def test_charges_are_whole_positive_and_never_less_than_the_exact_sum(requests, outputs, strategy):
    found = charges(requests, table([Transformation("a", outputs, strategy)]))
    assert all(isinstance(amount, int) and amount > 0 for amount in found.values())
    for output, factor in outputs.items():
        exact = max(F(0), factor * requests.get("a", 0))
        assert exact <= found.get(output, 0) < exact + 1


def units(**factors):
    """Each kind of GPU counts as so many units instead."""
    return table(Transformation(of, {UNITS: F(n)}, Strategy.REPLACE) for of, n in factors.items())


def test_an_h100_is_two_units_where_an_a100_is_one():
    rules = units(**{H100: 2, A100: 1})
    assert charges({H100: 3}, rules) == {UNITS: 6}
    assert charges({A100: 3, CPU: 1000}, rules) == {UNITS: 3, CPU: 1000}


# -- in the engine -----------------------------------------------------------------------------
RULES = units(**{GPU: 2})


def in_units(quota: int, **changes: object) -> World:
    """A queue that counts units; its nodes have four GPUs each."""
    group = ResourceGroup((UNITS,), (FlavorQuotas("h100-sxm", {UNITS: Quota(quota)}),))
    return world().nodes(2).queue("cq", cohort=None, groups=(group,), **changes)


def counted(count: int, gpus: int = 1):
    asked = pods(count, gpus)
    return replace(asked, charges=charges_or_none(asked.requests, RULES))


def test_quota_counts_the_charges_and_nodes_the_requests():
    made = in_units(8).pending("fits", "cq", counted(4)).pending("waits", "cq", counted(1))
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    admit, hold = plan.decisions
    assert isinstance(admit, Admit)
    assert admit.assignments[0].flavors == {UNITS: "h100-sxm"}
    assert sum(admit.assignments[0].nodes.values()) == 4
    assert isinstance(hold, Hold)
    quota = [b for b in hold.blockers if b.code is BlockerCode.QUOTA_NOMINAL]
    assert [(b.resource, b.needed, b.available) for b in quota] == [(UNITS, 2, 0)]


def test_nodes_bind_where_quota_would_not():
    made = in_units(100).pending("big", "cq", counted(9))
    (hold,) = decide(made.build()).decisions
    assert isinstance(hold, Hold)


def test_what_is_impossible_is_told_in_charges():
    snapshot = in_units(8).build()
    findings = check_workload(snapshot, Workload("w", "w", "cq", 0, 1.0, (counted(5),)))
    (never,) = [f for f in findings if f.code == "NEVER_FITS_QUEUE"]
    assert never.numbers["resource"] == UNITS
    assert (never.numbers["need"], never.numbers["ceiling"]) == (10, 8)


def test_gpus_are_metered_as_they_are_although_quota_counts_units():
    simulator = Simulator(in_units(8).pending("w", "cq", counted(4)).build())
    simulator.run()
    (share,) = split(simulator.snapshot)
    assert (share.resource, share.amount, share.flavor) == (GPU, 4, "h100-sxm")
    assert share.holding is Holding.NOMINAL


def test_the_kueue_profile_counts_charges_too():
    made = in_units(8).pending("w", "cq", counted(4))
    (entry,) = decide_heads(made.build(), Profile.kueue()).entries
    assert entry.outcome is HeadOutcome.ADMITTED
    made = in_units(7).pending("w", "cq", counted(4))
    (entry,) = decide_heads(made.build(), Profile.kueue()).entries
    assert entry.outcome is HeadOutcome.NO_FIT


def test_pods_of_other_charges_are_of_another_shape():
    made = in_units(2).pending("dear", "cq", counted(2)).pending("cheap", "cq", counted(1))
    plan = decide(made.build())
    assert [d.workload for d in plan.decisions if isinstance(d, Admit)] == ["cheap"]


@pytest.mark.parametrize("amount", [2**63 - 1, 2**63, 2**80])
def test_huge_quantities_never_wrap_round_into_free_admission(amount):
    made = in_units(8)
    huge = replace(pods(3), charges={UNITS: amount})
    snapshot = made.pending("huge", "cq", huge).pending("small", "cq", counted(1)).build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    assert [d.workload for d in plan.decisions if isinstance(d, Admit)] == ["small"]
