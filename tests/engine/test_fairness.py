"""Whose turn it is in a cohort tree that shares by share or by history."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.fairness import fairness_of, strategies_of
from scheduling.engine.machines import GPU
from scheduling.engine.plan import Admit
from scheduling.engine.snapshot import FlavorQuotas, FlavorResource, Quota, ResourceGroup, Snapshot
from scheduling.engine.terms import Fairness, FairStrategy
from scheduling.engine.tree import cohort_key, queue_key
from tests.engine.builders import World, pods, world

SHARE, HISTORY, NONE = Fairness.SHARE, Fairness.HISTORY, Fairness.NONE
FINAL, INITIAL = FairStrategy.FINAL_SHARE, FairStrategy.INITIAL_SHARE


def started(snapshot: Snapshot) -> list[str]:
    """Return who starts, in order."""
    return [d.workload for d in decide(snapshot).decisions if isinstance(d, Admit)]


@pytest.mark.parametrize(
    ("stated", "platform", "mode"),
    [
        (NONE, (), NONE),
        (NONE, (FINAL,), SHARE),
        (SHARE, (), SHARE),
        (HISTORY, (FINAL,), HISTORY),
    ],
)
def test_the_root_says_by_what_its_tree_shares(stated, platform, mode) -> None:
    made = world().cohort("root", fairness=stated).cohort("left", "root", fairness=SHARE)
    snapshot = replace(made.queue("cq", 1, "left").build(), fair_strategies=platform)
    assert fairness_of(snapshot, cohort_key("root")) is mode
    assert strategies_of(snapshot) == (platform or (FINAL, INITIAL))


def test_a_queue_alone_shares_with_nobody_and_a_named_cohort_follows_the_platform() -> None:
    snapshot = replace(world().queue("cq", 1, "llm").build(), fair_strategies=(INITIAL,))
    assert fairness_of(snapshot, queue_key("cq")) is NONE
    assert fairness_of(snapshot, cohort_key("llm")) is SHARE


def pool(fairness: Fairness, gpus: int = 30) -> World:
    """E3 of ``admission.md``: a shared pool, A of weight 2, B of weight 1, nothing is theirs."""
    made = world().nodes(8).cohort("llm", nominal=gpus, fairness=fairness)
    return made.queue("cq-a", fair_weight=2.0).queue("cq-b", fair_weight=1.0)


@pytest.mark.parametrize(("fairness", "a"), [(NONE, 30), (SHARE, 20), (HISTORY, 20)])
def test_a_pool_is_shared_by_weight(fairness, a) -> None:
    made = pool(fairness)
    for number in range(30):
        made.pending(f"a-{number:02d}", "cq-a")
    for number in range(30):
        made.pending(f"b-{number:02d}", "cq-b")
    names = started(made.build())
    assert len(names) == 30
    assert sum(name.startswith("a") for name in names) == a


def test_nominal_is_judged_for_each_flavor_before_the_share() -> None:
    """T2: what A borrows of a10 does not cost it its own h100."""
    columns = [FlavorResource(flavor, GPU) for flavor in ("h100", "a10")]

    def lines(h100: int) -> tuple[ResourceGroup, ...]:
        flavors = tuple(
            FlavorQuotas(fr.flavor, {GPU: Quota(nominal)})
            for fr, nominal in zip(columns, (h100, 0), strict=True)
        )
        return (ResourceGroup((GPU,), flavors),)

    made = world().flavor("h100").flavor("a10").cohort("llm", fairness=SHARE)
    made.cohorts["llm"] = replace(made.cohorts["llm"], quotas={columns[1]: Quota(50)})
    for name in ("cq-a", "cq-b"):
        made.queue(name, groups=lines(5))
    made.queue("cq-c", groups=lines(5)[:1])
    made.running("a-h", "cq-a", gpus=4, flavor="h100").running(
        "a-a", "cq-a", gpus=30, flavor="a10"
    )
    made.running("b-h", "cq-b", gpus=5, flavor="h100").running(
        "b-a", "cq-b", gpus=20, flavor="a10"
    )
    made.running("c-h", "cq-c", gpus=5, flavor="h100")
    h100 = {"node_selector": {"accelerator": "h100"}}
    made.pending("c", "cq-c", pods(**h100)).pending("a", "cq-a", pods(**h100))
    assert started(made.build()) == ["a"]


def test_within_nominal_goes_before_a_smaller_share_that_borrows() -> None:
    """Kueue #3405: the job above nominal must not take the place of the one within."""
    made = world().nodes(2).cohort("llm", fairness=SHARE, nominal=3)
    made.queue("cq-a", 2).queue("cq-b", 1, cpu=4)
    made.running("a-cpu", "cq-a", gpus=0).running("b", "cq-b", gpus=1, on={"h100-node-01": 1})
    made.running("a", "cq-a", gpus=1, on={"h100-node-01": 1})
    made.pending("above", "cq-b", gpus=4, priority=9).pending("within", "cq-a", gpus=1)
    assert started(made.build()) == ["within"]


@pytest.mark.parametrize("fairness", [SHARE, HISTORY])
def test_a_queue_without_weight_comes_last_and_still_gets_what_is_left(fairness) -> None:
    made = pool(fairness, 4)
    made.queues["cq-a"] = replace(made.queues["cq-a"], fair_weight=0.0)
    made.used(cq_a=1.0, cq_b=100.0)
    for number in range(3):
        made.pending(f"a-{number}", "cq-a", priority=9).pending(f"b-{number}", "cq-b")
    assert started(made.build()) == ["b-0", "b-1", "b-2", "a-0"]


def test_two_queues_without_weight_compare_by_what_they_borrow() -> None:
    made = world().nodes(2).cohort("llm", nominal=8, fairness=SHARE)
    made.queue("cq-a", fair_weight=0.0).queue("cq-b", fair_weight=0.0)
    made.running("a", "cq-a", gpus=2, on={"h100-node-01": 1})
    made.pending("a-1", "cq-a", gpus=2, priority=9).pending("b-1", "cq-b", gpus=3)
    assert started(made.build()) == ["b-1", "a-1"]


def test_weights_count_at_both_levels_of_a_tree() -> None:
    """Research has 2 of 3 of the pool; in it vision has 3 of 4."""
    made = world().nodes(3).cohort("all", nominal=12, fairness=SHARE)
    made.cohort("research", "all", weight=2.0).cohort("product", "all", weight=1.0)
    made.queue("vision", cohort="research", fair_weight=3.0)
    made.queue("speech", cohort="research", fair_weight=1.0)
    made.queue("shop", cohort="product")
    for name in ("shop", "speech", "vision"):
        for number in range(12):
            made.pending(f"{name}-{number:02d}", name)
    names = [name.split("-")[0] for name in started(made.build())]
    assert {name: names.count(name) for name in set(names)} == {
        "vision": 6,
        "speech": 2,
        "shop": 4,
    }


def datos_and_ia(fairness: Fairness = HISTORY) -> World:
    """One GPU is free, both teams want it; Datos asked first and has used more."""
    made = world().nodes(1, gpus=1).cohort("llm", nominal=1, fairness=fairness)
    made.queue("cq-datos").queue("cq-ia")
    return made.pending("datos", "cq-datos").pending("ia", "cq-ia")


@pytest.mark.parametrize(
    ("fairness", "first"), [(NONE, "datos"), (SHARE, "datos"), (HISTORY, "ia")]
)
def test_who_has_used_less_starts_before_who_asked_first(fairness, first) -> None:
    made = datos_and_ia(fairness).used(cq_datos=40.0, cq_ia=10.0)
    assert started(made.build()) == [first]


def test_priority_decides_only_between_equal_pasts() -> None:
    made = datos_and_ia().used(cq_datos=40.0, cq_ia=40.0).pending("vip", "cq-ia", priority=5)
    assert started(made.build()) == ["vip"]
    assert started(made.used(cq_datos=10.0, cq_ia=40.0).build()) == ["datos"]


def test_the_order_between_trees_is_total_and_does_not_depend_on_the_input() -> None:
    made = world().nodes(1, gpus=2).cohort("left", nominal=2, fairness=SHARE)
    made.cohort("right", nominal=2).queue("l", cohort="left").queue("r", cohort="right")
    for number in range(3):
        made.pending(f"l-{number}", "l", created_at=5.0).pending(
            f"r-{number}", "r", created_at=5.0
        )
    snapshot = made.build()
    turned = replace(
        snapshot,
        workloads=snapshot.workloads[::-1],
        cohorts=dict(reversed(snapshot.cohorts.items())),
        cluster_queues=dict(reversed(snapshot.cluster_queues.items())),
    )
    assert started(snapshot) == started(turned) == ["l-0", "l-1"]
