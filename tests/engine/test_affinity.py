"""Node affinity: Kubernetes' meaning on nodes, only the flavor's own keys on flavors (K32)."""

from dataclasses import replace

import pytest

from scheduling.engine.affinity import admits_flavor, admits_node, holds
from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.kueue.cycle import HeadOutcome, decide_heads
from scheduling.engine.machines import GPU, Flavor, Topology
from scheduling.engine.plan import Admit, Hold
from scheduling.engine.profile import Profile
from scheduling.engine.snapshot import Expression, FlavorQuotas, Quota, ResourceGroup
from scheduling.engine.terms import BlockerCode, Operator, PendingReason
from tests.engine.builders import HOST, World, node, pods, world

IN, NOT_IN = Operator.IN, Operator.NOT_IN
EXISTS, ABSENT = Operator.EXISTS, Operator.DOES_NOT_EXIST
GT, LT = Operator.GREATER, Operator.LESS


def has(key: str, operator: Operator, *values: str) -> Expression:
    return Expression(key, operator, values)


@pytest.mark.parametrize(
    ("operator", "values", "label", "expected"),
    [
        (IN, ("a", "b"), "b", True),
        (IN, ("a", "b"), "c", False),
        (IN, ("a",), None, False),
        (NOT_IN, ("a",), "b", True),
        (NOT_IN, ("a",), "a", False),
        (NOT_IN, ("a",), None, True),
        (EXISTS, (), "", True),
        (EXISTS, (), None, False),
        (ABSENT, (), None, True),
        (ABSENT, (), "", False),
        (GT, ("4",), "5", True),
        (GT, ("4",), "4", False),
        (GT, ("-4",), "-3", True),
        (GT, ("4",), None, False),
        (GT, ("4",), "five", False),
        (GT, ("four",), "5", False),
        (GT, ("4", "1"), "5", False),
        (GT, ("9",), "10", True),  # as numbers, not as texts
        (LT, ("4",), "3", True),
        (LT, ("4",), "4", False),
        (LT, ("4",), "", False),
        (LT, ("4",), "0x2", False),
    ],
)
def test_an_expression_means_what_it_means_in_kubernetes(operator, values, label, expected):
    assert holds(Expression("zone", operator, values), label) is expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ((), True),
        (((),), False),  # a term without expressions matches no node
        (((has("zone", IN, "a"),),), True),
        (((has("zone", IN, "b"),), (has("disk", EXISTS),)), True),  # terms are ORed
        (((has("zone", IN, "a"), has("disk", ABSENT)),), False),  # expressions are ANDed
        (((has("metadata.name", IN, "h100-node-01"),),), True),
        (((has("metadata.name", NOT_IN, "h100-node-01"),),), False),
    ],
)
def test_a_node_suits_if_all_of_some_term_holds(terms, expected):
    labelled = replace(node(1), labels={"zone": "a", "disk": "ssd"})
    assert admits_node(terms, labelled) is expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ((), True),
        (((has("tier", IN, "a"),),), True),
        (((has("tier", IN, "b"),),), False),
        (((has("tier", IN, "a"), has("zone", IN, "nowhere")),), True),  # not its own key
        (((has("tier", IN, "b"), has("zone", IN, "nowhere")),), False),
        (((has("zone", IN, "nowhere"),),), True),  # the term has lost everything
        (((has("tier", IN, "b"),), (has("zone", EXISTS),)), True),  # so it admits any flavor
        (((has("zone", ABSENT),),), True),
    ],
)
def test_a_flavor_is_asked_only_for_its_own_labels(terms, expected):
    assert admits_flavor(terms, {"tier": "a"}) is expected


def two_flavors() -> World:
    """Two flavors of one node each; node 1 is of flavor x, node 2 of flavor y."""
    made = world()
    made.flavors = {name: Flavor(name, {"tier": name}) for name in "xy"}
    made.node_list = [
        replace(node(1), labels={"tier": "x", "zone": "1", HOST: "h100-node-01"}),
        replace(node(2), labels={"tier": "y", "zone": "2", HOST: "h100-node-02"}),
    ]
    quotas = tuple(FlavorQuotas(name, {GPU: Quota(8)}) for name in "xy")
    return made.queue("cq", cohort=None, groups=(ResourceGroup((GPU,), quotas),))


def test_affinity_chooses_the_flavor_and_says_which_it_refused():
    made = two_flavors().pending("w", "cq", pods(affinity=((has("tier", NOT_IN, "x"),),)))
    made.pending("none", "cq", pods(affinity=((has("tier", IN, "z"),),)))
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    admit = next(d for d in plan.decisions if isinstance(d, Admit))
    assert admit.assignments[0].flavors == {GPU: "y"}
    hold = next(d for d in plan.decisions if isinstance(d, Hold))
    assert hold.reason is PendingReason.NO_MATCHING_FLAVOR
    refused = {(b.code, b.where, b.facts["cause"]) for b in hold.blockers}
    assert refused == {
        (BlockerCode.FLAVOR_MISMATCH, "x", "NodeAffinity"),
        (BlockerCode.FLAVOR_MISMATCH, "y", "NodeAffinity"),
    }


def test_affinity_on_a_key_of_nodes_alone_is_judged_by_the_nodes():
    made = two_flavors().pending("w", "cq", pods(affinity=((has("zone", IN, "2"),),)))
    plan = decide(made.build())
    (admit,) = plan.decisions
    assert isinstance(admit, Admit)
    assert admit.assignments[0].nodes == {"h100-node-02": 1}


def test_who_is_kept_from_all_nodes_by_affinity_is_told_so():
    made = world().nodes(2).queue("cq", 8, None)
    made.pending("w", "cq", pods(affinity=((has("zone", EXISTS),),)))
    (hold,) = decide(made.build()).decisions
    assert isinstance(hold, Hold)
    never = [b for b in hold.blockers if b.code is BlockerCode.IMPOSSIBLE]
    assert [b.facts["excluded_affinity"] for b in never] == [2]


def test_a_refused_affinity_does_not_park_its_likes_of_another_affinity():
    made = world().nodes(2).queue("cq", 8, None)
    made.pending("bad", "cq", pods(affinity=((has("zone", EXISTS),),)))
    made.pending("good", "cq", pods(affinity=((has("zone", ABSENT),),)))
    plan = decide(made.build())
    assert [d.workload for d in plan.decisions if isinstance(d, Admit)] == ["good"]


def test_the_kueue_profile_reads_affinity_on_flavors_and_on_hosts():
    made = two_flavors()
    made.topologies = {"t": Topology("t", (HOST,))}
    made.flavors = {n: replace(f, topology="t") for n, f in made.flavors.items()}
    made.pending("flavor", "cq", pods(affinity=((has("tier", IN, "y"),),)))
    (entry,) = decide_heads(made.build(), Profile.kueue()).entries
    assert entry.outcome is HeadOutcome.ADMITTED
    assert entry.nomination.assignments[0].flavors == {GPU: "y"}
    made.workloads = []
    made.pending("host", "cq", pods(affinity=((has("zone", IN, "3"),),)))
    (entry,) = decide_heads(made.build(), Profile.kueue()).entries
    assert entry.outcome is HeadOutcome.NO_FIT
