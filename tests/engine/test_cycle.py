"""Whole cycles: who is admitted, who waits, in which order, and why."""

from dataclasses import replace

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.machines import GPU, Flavor, Taint
from scheduling.engine.plan import Admit, Evict, Hold, Plan
from scheduling.engine.snapshot import FlavorQuotas, Quota, ResourceGroup
from scheduling.engine.terms import (
    BlockerCode,
    EvictionReason,
    PendingReason,
    QueueingStrategy,
    StopPolicy,
    Undeclared,
)
from tests.engine.builders import RACK, World, node, pods, required, three_teams, world


def plan_of(made: World) -> Plan:
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    return plan


def admitted(plan: Plan) -> list[str]:
    return [d.workload for d in plan.decisions if isinstance(d, Admit)]


def held(plan: Plan, key: str) -> Hold:
    (hold,) = [d for d in plan.decisions if isinstance(d, Hold) and d.workload == key]
    return hold


def codes(hold: Hold) -> list[BlockerCode]:
    return [blocker.code for blocker in hold.blockers]


def test_a_gang_is_admitted_with_quota_and_nodes() -> None:
    plan = plan_of(world().nodes(8).queue("cq", 32).pending("g", "cq", pods(8, 4)))
    (admit,) = plan.decisions
    assert isinstance(admit, Admit)
    (assignment,) = admit.assignments
    assert assignment.flavors == {GPU: "h100-sxm"}
    assert assignment.nodes == {f"h100-node-{n:02d}": 1 for n in range(1, 9)}
    assert admit.borrows == {}


def test_one_node_short_the_gang_waits_and_knows_the_numbers() -> None:
    made = world().nodes(7).nodes(1, schedulable=False).queue("cq", 32)
    hold = held(plan_of(made.pending("g", "cq", pods(8, 4))), "g")
    assert hold.reason is PendingReason.TOPOLOGY_PLACEMENT_FAILED
    (blocker,) = hold.blockers
    assert blocker.code is BlockerCode.GANG_NO_FIT
    assert (blocker.resource, blocker.needed, blocker.available) == (GPU, 32, 28)
    assert {"pods": 8, "fits": 7, "excluded_cordoned": 1}.items() <= blocker.facts.items()


def test_a_cycle_drains_and_the_smaller_one_passes_in_best_effort() -> None:
    made = world().nodes(2).queue("cq", 8)
    made.pending("a", "cq", gpus=4).pending("big", "cq", pods(2, 4)).pending("c", "cq", gpus=4)
    plan = plan_of(made)
    assert admitted(plan) == ["a", "c"]
    assert held(plan, "big").position == 1


def test_a_strict_head_blocks_its_queue_only() -> None:
    strict = QueueingStrategy.STRICT_FIFO
    made = world().nodes(2).queue("cq", 4, None, queueing_strategy=strict).queue("o", 4, None)
    made.pending("a", "cq", gpus=2).pending("big", "cq", gpus=4).pending("c", "cq")
    plan = plan_of(made.pending("other", "o"))
    assert admitted(plan) == ["a", "other"]
    hold = held(plan, "c")
    assert hold.position == 2
    assert codes(hold) == [BlockerCode.BEHIND_IN_QUEUE]
    assert hold.blockers[0].facts == {"ahead": 1, "head": "big"}


def test_a_strict_head_that_can_never_start_does_not_keep_others_from_starting() -> None:
    strict = QueueingStrategy.STRICT_FIFO
    made = world().nodes(2).queue("cq", 4, None, queueing_strategy=strict)
    plan = plan_of(made.pending("never", "cq", gpus=8).pending("small", "cq"))
    assert admitted(plan) == ["small"]
    assert BlockerCode.IMPOSSIBLE in codes(held(plan, "never"))


def test_priority_then_age_then_key() -> None:
    made = world().nodes(1).queue("cq", 4)
    made.pending("late", "cq", created_at=9).pending("b", "cq", created_at=5)
    made.pending("a", "cq", created_at=5).pending("urgent", "cq", priority=1, created_at=99)
    assert admitted(plan_of(made)) == ["urgent", "a", "b", "late"]


def test_who_need_not_borrow_goes_first() -> None:
    made = world().nodes(1).queue("a", 0).queue("b", 2)
    made.pending("borrower", "a", gpus=2, priority=9).pending("owner", "b", gpus=2)
    plan = plan_of(made)
    assert admitted(plan) == ["owner"]
    hold = held(plan, "borrower")
    assert hold.reason is PendingReason.WAITING_FOR_QUOTA
    assert codes(hold)[:2] == [BlockerCode.QUOTA_NOMINAL, BlockerCode.LENDER_BUSY]
    assert hold.blockers[1].facts["holders"] == "b: 2"


def test_borrowing_is_counted_by_resource() -> None:
    plan = plan_of(three_teams().pending("d", "cq-datos", gpus=4))
    (admit,) = plan.decisions
    assert isinstance(admit, Admit)
    assert admit.borrows == {GPU: 2}


def test_the_borrowing_limit_is_named_with_its_number() -> None:
    made = three_teams().running("x", "cq-datos", gpus=2).pending("d", "cq-datos", gpus=3)
    hold = held(plan_of(made), "d")
    assert codes(hold)[:2] == [BlockerCode.QUOTA_NOMINAL, BlockerCode.BORROW_LIMIT]
    assert (hold.blockers[1].needed, hold.blockers[1].available) == (3, 2)


def test_what_can_never_fit_is_impossible_and_evicts_nobody() -> None:
    made = three_teams().running("x", "cq-datos", gpus=4, on={"h100-node-01": 1})
    hold = held(plan_of(made.pending("p", "cq-plataforma", gpus=5, priority=9)), "p")
    assert hold.reason is PendingReason.EXCEEDS_MAX_QUOTA
    assert hold.blockers[0].code is BlockerCode.IMPOSSIBLE
    assert hold.blockers[0].facts["sub_code"] == "NEVER_FITS_QUEUE"


def test_the_second_queue_is_a_ceiling_too() -> None:
    made = world().nodes(8).queue("cq", 32, None).queue("team", 16, None)
    made.pending("g", "cq", pods(8, 4), ceiling_queue="team")
    hold = held(plan_of(made), "g")
    assert hold.reason is PendingReason.EXCEEDS_MAX_QUOTA
    assert hold.blockers[0].where == "team"


def test_enough_free_gpus_in_the_wrong_places_is_fragmentation() -> None:
    made = world().nodes(4).queue("cq", 16)
    for number in range(1, 5):
        made.running(f"r{number}", "cq", gpus=2, on={f"h100-node-{number:02d}": 1})
    hold = held(plan_of(made.pending("g", "cq", pods(2, 3))), "g")
    assert codes(hold) == [BlockerCode.FRAGMENTED]
    assert hold.blockers[0].facts["free"] == 8


def test_no_domain_is_close_enough() -> None:
    made = world().topology().nodes(4).queue("cq", 16)
    made.running("r", "cq", gpus=4, on={"h100-node-01": 1})
    made.running("s", "cq", gpus=4, on={"h100-node-03": 1})
    hold = held(plan_of(made.pending("g", "cq", pods(2, 4, topology=required(RACK)))), "g")
    (blocker,) = hold.blockers
    assert blocker.code is BlockerCode.TOPOLOGY_NO_DOMAIN
    assert (blocker.needed, blocker.available, blocker.where) == (8, 4, RACK)


def test_without_any_node_quota_alone_decides() -> None:
    (admit,) = plan_of(world().queue("cq", 32).pending("g", "cq", pods(8, 4))).decisions
    assert isinstance(admit, Admit)
    assert admit.assignments[0].nodes == {}


def test_an_undeclared_resource_blocks_or_is_ignored() -> None:
    made = world().nodes(1).queue("cq", 4).pending("g", "cq", pods(1, 1, cpu=4))
    hold = held(plan_of(made), "g")
    assert hold.reason is PendingReason.NO_MATCHING_FLAVOR
    assert hold.blockers[0].facts["cause"] == "UndeclaredResource"
    made.queues["cq"] = replace(made.queues["cq"], undeclared=Undeclared.IGNORE)
    assert admitted(plan_of(made)) == ["g"]


def test_pod_sets_are_assigned_together() -> None:
    """T4 of ``admission.md``: greedy would put the master where the worker must go."""
    group = ResourceGroup(
        (GPU,),
        (FlavorQuotas("single", {GPU: Quota(16)}), FlavorQuotas("multi", {GPU: Quota(8)})),
    )
    made = world().queue("cq", cohort=None, groups=(group,))
    made.flavors = {name: Flavor(name) for name in ("single", "multi")}
    made.pending("g", "cq", pods(1, 8, "master"), pods(1, 16, "worker"))
    (admit,) = plan_of(made).decisions
    assert isinstance(admit, Admit)
    assert [a.flavors[GPU] for a in admit.assignments] == ["multi", "single"]


def test_a_node_of_two_flavors_is_sold_once() -> None:
    group = ResourceGroup(
        (GPU,),
        (FlavorQuotas("h100-sxm", {GPU: Quota(4)}), FlavorQuotas("any", {GPU: Quota(4)})),
    )
    made = world().nodes(1).flavor().queue("cq", cohort=None, groups=(group,))
    made.flavors["any"] = Flavor("any")
    made.pending("a", "cq", gpus=4).pending("b", "cq", gpus=4)
    assert admitted(plan_of(made)) == ["a"]


def test_stopped_missing_and_inactive_queues_say_so() -> None:
    made = (
        world()
        .nodes(1)
        .cohort("x", "y")
        .cohort("y", "x")
        .queue("stopped", 4, stop_policy=StopPolicy.HOLD)
        .queue("broken", 4, inactive="FlavorNotFound")
        .queue("circular", 4, "x")
    )
    made.pending("a", "stopped").pending("b", "broken").pending("c", "circular")
    made.pending("d", "gone").pending("e", "stopped", blocked="NAMESPACE_NOT_ALLOWED")
    plan = plan_of(made)
    told = {key: (held(plan, key).reason, codes(held(plan, key))) for key in "abcde"}
    misconfigured = PendingReason.MISCONFIGURED
    assert told == {
        "a": (PendingReason.ON_HOLD, [BlockerCode.QUEUE_STOPPED]),
        "b": (misconfigured, [BlockerCode.QUEUE_INACTIVE]),
        "c": (misconfigured, [BlockerCode.QUEUE_INACTIVE]),
        "d": (misconfigured, [BlockerCode.QUEUE_MISSING]),
        "e": (misconfigured, [BlockerCode.NAMESPACE_NOT_ALLOWED]),
    }


def test_hold_and_drain_evicts_running_work() -> None:
    made = world().nodes(1).queue("cq", 4, stop_policy=StopPolicy.HOLD_AND_DRAIN)
    plan = plan_of(made.running("a", "cq", on={"h100-node-01": 1}))
    assert plan.decisions == (
        Evict("a", EvictionReason.CLUSTER_QUEUE_STOPPED, lost_gpu_hours=800 / 3600),
    )


def test_work_outside_every_queue_takes_nodes_first_and_no_quota() -> None:
    made = world().nodes(1).queue("cq", 4).pending("q", "cq", gpus=2)
    made.pending("drift", None, pods(1, 3)).pending("big", None, pods(1, 2))
    plan = plan_of(made)
    assert admitted(plan) == ["drift"]
    assert codes(held(plan, "big")) == [BlockerCode.GANG_NO_FIT]
    assert held(plan, "q").reason is PendingReason.TOPOLOGY_PLACEMENT_FAILED


def test_an_implicit_quota_on_pods_counts_pods() -> None:
    group = ResourceGroup(
        (GPU, "pods"), (FlavorQuotas("h100-sxm", {GPU: Quota(8), "pods": Quota(2)}),)
    )
    made = world().nodes(1).queue("cq", cohort=None, groups=(group,))
    made.pending("three", "cq", pods(3)).pending("two", "cq", pods(2))
    assert admitted(plan_of(made)) == ["two"]


def test_a_flavor_mismatch_is_kept_for_the_explanation() -> None:
    made = world().nodes(1).queue("cq", 4)
    made.pending("g", "cq", pods(node_selector={"accelerator": "a100"}))
    hold = held(plan_of(made), "g")
    assert hold.reason is PendingReason.NO_MATCHING_FLAVOR
    assert codes(hold) == [BlockerCode.FLAVOR_MISMATCH]
    assert hold.blockers[0].where == "h100-sxm"


def test_a_taint_on_every_node_is_named() -> None:
    made = world().queue("cq", 4)
    made.node_list = [node(1, taints=(Taint("nvidia.com/gpu"),))]
    assert codes(held(plan_of(made.pending("g", "cq")), "g"))[0] is BlockerCode.TAINT
