"""Every rule of a quota table and of a cluster queue, by its code and the place it points to."""

from decimal import Decimal

import pytest

from queues import rules
from queues.specs import (
    FlavorQuotasSpec,
    FungibilitySpec,
    PreemptionSpec,
    QuotaSpec,
    ResourceGroupSpec,
)
from tests.queues.promises import GPU, group, queue
from tests.queues.test_rules import found

CELL = "groups[0].flavors[0].quotas[0]"


def many_groups(count, flavors=1, resources=1):
    return tuple(
        ResourceGroupSpec(
            tuple(f"example.com/r{g}-{r}" for r in range(resources)),
            tuple(
                FlavorQuotasSpec(
                    f"f{g}-{f}",
                    tuple(QuotaSpec(f"example.com/r{g}-{r}", 1) for r in range(resources)),
                )
                for f in range(flavors)
            ),
        )
        for g in range(count)
    )


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        pytest.param(QuotaSpec(GPU, 0), [], id="zero is legal, and needed to borrow"),
        pytest.param(QuotaSpec(GPU, -1), [(f"{CELL}.nominal", "negative")], id="negative"),
        pytest.param(QuotaSpec(GPU, 2**63), [(f"{CELL}.nominal", "too_large")], id="64 bits"),
        pytest.param(
            QuotaSpec(GPU, 1, borrowing_limit=-1),
            [(f"{CELL}.borrowing_limit", "negative")],
            id="negative borrowing limit",
        ),
        pytest.param(
            QuotaSpec(GPU, 16, lending_limit=17),
            [(f"{CELL}.lending_limit", "lending_above_nominal")],
            id="nobody lends more than is theirs",
        ),
        pytest.param(
            QuotaSpec("a b", 1),
            [("groups[0].resources[0]", "bad_label_key")],
            id="resources are label keys",
        ),
    ],
)
def test_quotas(quota, expected):
    assert found(rules.check_cluster_queue(queue(groups=(group(quota),)), ())) == expected


def test_a_lending_problem_carries_its_numbers():
    spec = queue(groups=(group(QuotaSpec(GPU, 16, lending_limit=17)),))
    (problem,) = rules.check_cluster_queue(spec, ())
    assert problem.message == "cannot lend 17 GPUs of 16 GPUs"
    assert problem.numbers == {"resource": GPU, "lending": 17, "nominal": 16}


TWO = (QuotaSpec("cpu", 1), QuotaSpec(GPU, 1))


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param((), [], id="a queue may promise nothing yet"),
        pytest.param(many_groups(17), [("groups", "too_many")], id="16 groups"),
        pytest.param(
            (ResourceGroupSpec((), ()),),
            [("groups[0].resources", "too_few"), ("groups[0].flavors", "too_few")],
            id="a group has resources and flavors",
        ),
        pytest.param(
            many_groups(1, flavors=65), [("groups[0].flavors", "too_many")], id="64 flavors"
        ),
        pytest.param(
            many_groups(1, resources=65), [("groups[0].resources", "too_many")], id="64 resources"
        ),
        pytest.param(
            many_groups(5, flavors=52), [("groups", "too_many_flavors")], id="256 flavors in all"
        ),
        pytest.param(
            many_groups(5, resources=52),
            [("groups", "too_many_resources")],
            id="256 resources in all",
        ),
        pytest.param(
            many_groups(1, flavors=27, resources=19),
            [("groups[0]", "too_many_cells")],
            id="512 quotas in a group",
        ),
        pytest.param(
            (group(QuotaSpec(GPU, 1)), group(QuotaSpec(GPU, 1), flavor="other")),
            [("groups[0].resources[0]", "duplicate"), ("groups[1].resources[0]", "duplicate")],
            id="a resource stands in one group",
        ),
        pytest.param(
            (group(QuotaSpec(GPU, 1)), group(QuotaSpec("cpu", 1))),
            [
                ("groups[0].flavors[0].flavor", "duplicate"),
                ("groups[1].flavors[0].flavor", "duplicate"),
            ],
            id="a flavor stands in one group",
        ),
        pytest.param(
            (ResourceGroupSpec((GPU, "cpu"), (FlavorQuotasSpec("h100-sxm", TWO),)),),
            [("groups[0].flavors[0].quotas", "resources_differ")],
            id="the order of resources is the same everywhere",
        ),
        pytest.param(
            (ResourceGroupSpec((GPU, "cpu"), (FlavorQuotasSpec("h100-sxm", TWO[:1]),)),),
            [("groups[0].flavors[0].quotas", "resources_differ")],
            id="a flavor lists all resources",
        ),
    ],
)
def test_groups(groups, expected):
    assert found(rules.check_cluster_queue(queue(groups=groups), ())) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(queue(), [], id="a plain queue"),
        pytest.param(
            queue(cohort=None),
            [(f"{CELL}.borrowing_limit", "no_cohort"), (f"{CELL}.lending_limit", "no_cohort")],
            id="limits need a cohort",
        ),
        pytest.param(queue(cohort="A"), [("cohort", "bad_name")], id="a cohort's name"),
        pytest.param(queue(team="x"), [("team", "no_such_team")], id="unknown team"),
        pytest.param(
            queue(preemption=PreemptionSpec(borrow_within_cohort="LowerPriority")),
            [("preemption.borrow_within_cohort", "needs_reclaim")],
            id="to evict while borrowing needs the right to reclaim",
        ),
        pytest.param(
            queue(preemption=PreemptionSpec(within_cluster_queue="Sometimes")),
            [("preemption.within_cluster_queue", "unknown_choice")],
            id="policies are known words",
        ),
        pytest.param(
            queue(preemption=PreemptionSpec(max_priority_threshold=2**31)),
            [("preemption.max_priority_threshold", "out_of_range")],
            id="a priority has 32 bits",
        ),
        pytest.param(
            queue(stop_policy="Halt"), [("stop_policy", "unknown_choice")], id="stop policy"
        ),
        pytest.param(
            queue(queueing_strategy="LIFO"),
            [("queueing_strategy", "unknown_choice")],
            id="queueing strategy",
        ),
        pytest.param(
            queue(undeclared="Ask"), [("undeclared", "unknown_choice")], id="undeclared resources"
        ),
        pytest.param(
            queue(fair_weight=Decimal(-1)), [("fair_weight", "out_of_range")], id="weight below 0"
        ),
        pytest.param(
            queue(fair_weight=Decimal("NaN")), [("fair_weight", "out_of_range")], id="no number"
        ),
        pytest.param(
            queue(fair_weight=Decimal("1e-9")),
            [("fair_weight", "too_precise")],
            id="a weight too small to keep",
        ),
        pytest.param(queue(fair_weight=Decimal(0)), [], id="weight 0 is legal"),
        pytest.param(
            queue(fungibility=FungibilitySpec(preference="PreemptionOverBorrowing")),
            [("fungibility.preference", "needs_whole_search")],
            id="to prefer evicting, every flavor must be looked at",
        ),
        pytest.param(
            queue(
                fungibility=FungibilitySpec(
                    "TryNextFlavor", "TryNextFlavor", "PreemptionOverBorrowing"
                )
            ),
            [],
            id="evicting is preferred where every flavor is looked at",
        ),
        pytest.param(
            queue(fungibility=FungibilitySpec("Sometimes", "Later", "Luck")),
            [
                ("fungibility.when_can_borrow", "unknown_choice"),
                ("fungibility.when_can_preempt", "unknown_choice"),
                ("fungibility.preference", "unknown_choice"),
            ],
            id="the search of flavors has known words",
        ),
        pytest.param(
            queue(minimum_runtime_s=-1),
            [("minimum_runtime_s", "out_of_range")],
            id="no time is negative",
        ),
        pytest.param(
            queue(minimum_runtime_s=2**31),
            [("minimum_runtime_s", "out_of_range")],
            id="a time has 32 bits",
        ),
        pytest.param(queue(minimum_runtime_s=3600, yields_to_own=True), [], id="an hour"),
        pytest.param(
            queue(admission_order="luck"), [("admission_order", "unknown_choice")], id="order"
        ),
        pytest.param(queue(admission_order="usage", priority_first=True), [], id="by usage"),
    ],
)
def test_cluster_queues(spec, expected):
    assert found(rules.check_cluster_queue(spec, {"datos"})) == expected
