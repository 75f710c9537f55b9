"""Which flavors a queue's rules of fungibility lead to, pod sets together, no memory."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.engine.cycle import decide
from scheduling.engine.kueue.cycle import HeadOutcome, decide_heads
from scheduling.engine.machines import CPU, GPU
from scheduling.engine.plan import Admit, Evict, Plan
from scheduling.engine.profile import Profile
from scheduling.engine.queue_rules import Fungibility
from scheduling.engine.snapshot import FlavorQuotas, Preemption, Quota, ResourceGroup, Snapshot
from scheduling.engine.terms import (
    BorrowWithinCohort,
    FlavorPreference,
    FlavorSearch,
    ReclaimWithinCohort,
    WithinClusterQueue,
)
from tests.engine.builders import RECLAIM_ANY, RECLAIM_LOWER, World, pods, world
from tests.engine.simulator import Simulator

STOP, NEXT = FlavorSearch.MAY_STOP_SEARCH, FlavorSearch.TRY_NEXT_FLAVOR
BORROW_FIRST = FlavorPreference.BORROWING_OVER_PREEMPTION
PREEMPT_FIRST = FlavorPreference.PREEMPTION_OVER_BORROWING
DEFAULT = Fungibility()


def group(resource: str, **quotas: int | Quota) -> ResourceGroup:
    made = {f: q if isinstance(q, Quota) else Quota(q) for f, q in quotas.items()}
    flavors = tuple(FlavorQuotas(flavor, {resource: quota}) for flavor, quota in made.items())
    return ResourceGroup((resource,), flavors)


def flavored(*groups: ResourceGroup, rules: Fungibility = DEFAULT, **changes: object) -> World:
    """Queue ``a`` with these groups, in a cohort with the lender ``b``."""
    made = world()
    names = {quotas.flavor for one in groups for quotas in one.flavors}
    for name in sorted(names):
        made.flavor(name, node_labels={})
    lender = tuple(group(one.resources[0], **{q.flavor: 4 for q in one.flavors}) for one in groups)
    changes = {"preemption": RECLAIM_LOWER, "fungibility": rules} | changes
    return made.queue("a", groups=groups, **changes).queue("b", groups=lender)


def flavors(plan: Plan, key: str) -> list[Mapping[str, str]]:
    """Return the flavors that the workload got, or keeps a claim on."""
    found = [d.assignments for d in plan.decisions if isinstance(d, Admit) and d.workload == key]
    found += [claim.assignments for claim in plan.memory.claims if claim.workload == key]
    return [assignment.flavors for assignments in found for assignment in assignments]


def evicted(plan: Plan) -> list[str]:
    return sorted(d.workload for d in plan.decisions if isinstance(d, Evict))


# -- one pod set, two flavors: every rule ------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "want"),
    [
        pytest.param(DEFAULT, "x", id="borrowing on the first flavor is good enough"),
        pytest.param(Fungibility(NEXT, NEXT), "y", id="the next one may fit without borrowing"),
    ],
)
def test_when_it_can_borrow(rules, want) -> None:
    made = flavored(group(GPU, x=0, y=2), rules=rules).pending("p", "a")
    assert flavors(decide(made.build()), "p") == [{GPU: want}]


def test_the_first_flavor_is_borrowed_on_if_all_must_borrow() -> None:
    made = flavored(group(GPU, x=0, y=0), rules=Fungibility(NEXT, NEXT)).pending("p", "a")
    assert flavors(decide(made.build()), "p") == [{GPU: "x"}]


def test_from_nearby_beats_from_afar() -> None:
    rules = Fungibility(NEXT, NEXT)
    made = world().flavor("x", node_labels={}).flavor("y", node_labels={})
    made.cohort("root").cohort("near", "root").cohort("far", "root")
    made.queue("a", cohort="near", groups=(group(GPU, x=0, y=0),), fungibility=rules)
    made.queue("b", cohort="near", groups=(group(GPU, y=4),))
    made.queue("c", cohort="far", groups=(group(GPU, x=4),))
    made.pending("p", "a")
    assert flavors(decide(made.build()), "p") == [{GPU: "y"}]


@pytest.mark.parametrize(
    ("rules", "want", "victims"),
    [
        pytest.param(DEFAULT, "y", [], id="a flavor that fits beats one that needs victims"),
        pytest.param(Fungibility(STOP, STOP), "x", ["low"], id="unless the search may stop there"),
    ],
)
def test_when_it_can_preempt(rules, want, victims) -> None:
    made = flavored(group(GPU, x=Quota(2, 0), y=2), rules=rules)
    made.running("low", "a", gpus=2, flavor="x").pending("p", "a", gpus=2, priority=5)
    plan = decide(made.build())
    assert flavors(plan, "p") == [{GPU: want}]
    assert evicted(plan) == victims


@pytest.mark.parametrize(
    ("preference", "want", "victims"),
    [
        pytest.param(BORROW_FIRST, "x", [], id="borrow rather than evict"),
        pytest.param(PREEMPT_FIRST, "y", ["low"], id="evict rather than borrow"),
    ],
)
def test_what_the_queue_prefers(preference, want, victims) -> None:
    rules = Fungibility(NEXT, NEXT, preference)
    made = flavored(group(GPU, x=0, y=Quota(2, 0)), rules=rules)
    made.running("low", "a", gpus=2, flavor="y").pending("p", "a", gpus=2, priority=5)
    plan = decide(made.build())
    assert flavors(plan, "p") == [{GPU: want}]
    assert evicted(plan) == victims


def test_a_flavor_without_anybody_to_evict_never_outranks_one_that_fits() -> None:
    """Kueue #9462."""
    rules = Fungibility(NEXT, NEXT, PREEMPT_FIRST)
    made = flavored(group(GPU, y=Quota(2, 0), x=0), rules=rules)
    made.running("high", "a", gpus=2, flavor="y", priority=9)
    made.pending("p", "a", gpus=2, priority=5)
    assert flavors(decide(made.build()), "p") == [{GPU: "x"}]


def test_neither_borrowing_nor_evicting_is_best_whatever_is_preferred() -> None:
    for rules in (Fungibility(NEXT, NEXT, PREEMPT_FIRST), Fungibility(NEXT, NEXT)):
        made = flavored(group(GPU, x=0, y=Quota(2, 0), z=2), rules=rules)
        made.running("low", "a", gpus=2, flavor="y").pending("p", "a", gpus=2, priority=5)
        assert flavors(decide(made.build()), "p") == [{GPU: "z"}]


@pytest.mark.parametrize(
    ("rules", "want", "victims"),
    [
        pytest.param(
            DEFAULT, "y", ["loan"], id="only taking back a loan beats evicting one's own"
        ),
        pytest.param(Fungibility(STOP, STOP), "x", ["own"], id="unless the search may stop there"),
    ],
)
def test_of_two_flavors_that_need_victims(rules, want, victims) -> None:
    made = flavored(group(GPU, x=Quota(2, 0), y=2), preemption=RECLAIM_ANY, rules=rules)
    made.running("own", "a", gpus=2, flavor="x").running("loan", "b", gpus=6, flavor="y")
    plan = decide(made.pending("p", "a", gpus=2, priority=5).build())
    assert flavors(plan, "p") == [{GPU: want}]
    assert evicted(plan) == victims


def test_nobody_is_evicted_for_a_flavor_that_fits_no_better_than_an_earlier_one() -> None:
    rules = Fungibility(NEXT, STOP)
    made = flavored(group(GPU, x=0, y=1), rules=rules)
    made.running("low", "a", flavor="y").pending("p", "a", priority=5)
    plan = decide(made.build())
    assert flavors(plan, "p") == [{GPU: "x"}]
    assert evicted(plan) == []


def test_every_flavor_is_looked_at_in_every_cycle_and_nothing_is_remembered() -> None:
    """Kueue #3710, #2391: a search that goes on where the last one stopped may never stop."""
    made = flavored(group(GPU, x=0, y=2), rules=Fungibility(NEXT, NEXT))
    made.running("y", "a", gpus=6, flavor="y").running("x", "b", gpus=4, flavor="x")
    sim = Simulator(made.pending("p", "a").build())
    for _ in range(3):
        sim.step()
        assert "p" not in sim.admitted()
    sim.finish("x")
    sim.finish("y")
    sim.step()
    assert flavors(sim.plan, "p") == [{GPU: "y"}], "not the first that comes by"


def test_an_order_to_evict_is_kept_though_a_flavor_would_fit_by_borrowing() -> None:
    rules = Fungibility(NEXT, NEXT, PREEMPT_FIRST)
    made = flavored(group(GPU, x=0, y=Quota(2, 0)), rules=rules)
    made.running("low", "a", gpus=2, flavor="y").pending("p", "a", gpus=2, priority=5)
    sim = Simulator(made.build(), leave_after=3)
    sim.run()
    assert sim.evictions == [("low", "p")]
    (work,) = [w for w in sim.snapshot.workloads if w.key == "p"]
    assert work.admission is not None
    assert work.admission.assignments[0].flavors == {GPU: "y"}


# -- pod sets and groups together --------------------------------------------------------------


def test_two_pod_sets_find_the_one_way_that_serves_both() -> None:
    """T4 of ``admission.md``, whatever the rules of the queue."""
    sets = (pods(1, 8, "master"), pods(1, 16, "worker"))
    for borrow, preempt in product((STOP, NEXT), repeat=2):
        made = world().flavor("single", node_labels={}).flavor("multi", node_labels={})
        rules = Fungibility(borrow, preempt)
        made.queue("cq", cohort=None, groups=(group(GPU, single=16, multi=8),), fungibility=rules)
        plan = decide(made.pending("p", "cq", *sets).build())
        assert flavors(plan, "p") == [{GPU: "multi"}, {GPU: "single"}]


def test_the_way_that_is_found_late_is_found_for_victims_too() -> None:
    """The only pair of flavors that can ever hold the gang is the last of 64."""
    names = [f"f{number}" for number in range(8)]
    made = world()
    for name in names:
        made.flavor(name, node_labels={})
    lines = dict.fromkeys(names[:-2], 1) | {"f6": 16, "f7": 8}
    borrowing = replace(RECLAIM_LOWER, borrow_within_cohort=BorrowWithinCohort.LOWER_PRIORITY)
    made.queue("cq", groups=(group(GPU, **lines),), preemption=borrowing)
    made.running("low", "cq", gpus=8, flavor="f7")
    made.pending("p", "cq", pods(1, 8, "master"), pods(1, 16, "worker"), priority=5)
    plan = decide(made.build())
    assert evicted(plan) == ["low"]
    assert flavors(plan, "p") == [{GPU: "f7"}, {GPU: "f6"}]


def test_groups_borrow_each_as_little_as_it_can() -> None:
    rules = Fungibility(NEXT, NEXT)
    gpus, cores = group(GPU, x=0, y=2), group(CPU, c=0, d=8000)
    made = flavored(gpus, cores, rules=rules).pending("p", "a", pods(1, 1, cpu=0))
    made.workloads = [replace(made.workloads[0], pod_sets=(pods(1, 1, cpu=1),))]
    made.queues["b"] = replace(
        made.queues["b"], groups=(group(GPU, x=4, y=4), group(CPU, c=4000, d=4000))
    )
    assert flavors(decide(made.build()), "p") == [{GPU: "y", CPU: "d"}]


def test_a_pod_set_that_must_borrow_is_no_excuse_for_the_other() -> None:
    rules = Fungibility(NEXT, NEXT)
    sets = (pods(1, 2, "large"), pods(1, 1, "small"))
    made = flavored(group(GPU, x=0, y=1), rules=rules).pending("p", "a", *sets)
    made.queues["b"] = replace(made.queues["b"], groups=(group(GPU, x=4, y=0),))
    assert flavors(decide(made.build()), "p") == [{GPU: "x"}, {GPU: "y"}]


def test_default_rules_and_single_flavors_cost_nothing_more() -> None:
    def work(rules: Fungibility, **lines: int) -> Mapping[str, int]:
        made = flavored(group(GPU, **lines), rules=rules).pending("p", "a")
        return decide(made.build()).work

    assert work(DEFAULT, x=2, y=2)["pod_sets_tried"] == 1
    assert work(Fungibility(NEXT, STOP), x=2)["pod_sets_tried"] == 1


# -- the same choice as the recorded semantics where both know only one pod set ----------------

POLICIES = st.builds(
    Preemption,
    st.sampled_from((WithinClusterQueue.LOWER_PRIORITY, *WithinClusterQueue)),
    st.sampled_from((ReclaimWithinCohort.ANY, *ReclaimWithinCohort)),
    st.sampled_from(BorrowWithinCohort),
)
RULES = st.sampled_from(
    [
        *(Fungibility(borrow, preempt) for borrow, preempt in product((STOP, NEXT), repeat=2)),
        Fungibility(NEXT, NEXT, PREEMPT_FIRST),
    ]
)
limits = st.none() | st.integers(0, 2)


@st.composite
def one_head(draw: st.DrawFn) -> Snapshot:
    """One waiting workload, flavors in three queues of a tree, running work of one GPU each."""
    names = ("x", "y", "z")[: draw(st.integers(2, 3))]
    made = world().cohort("root").cohort("left", "root")
    for name in names:
        made.flavor(name, node_labels={})
    for queue, cohort in (("a", "left"), ("b", "left"), ("c", "root")):
        lines = {
            name: Quota(draw(st.integers(0, 3)), draw(limits), draw(limits)) for name in names
        }
        rules, rights = draw(RULES), draw(POLICIES)
        groups = (group(GPU, **lines),)
        made.queue(queue, cohort=cohort, groups=groups, fungibility=rules, preemption=rights)
    for number in range(draw(st.integers(0, 8))):
        queue, flavor = draw(st.sampled_from("abc")), draw(st.sampled_from(names))
        priority, at = draw(st.integers(0, 1)), 10.0 + number
        made.running(f"r{number}", queue, flavor=flavor, priority=priority, at=at, created_at=at)
    made.pending("p", "a", gpus=draw(st.integers(1, 4)), priority=1, created_at=5.0)
    return made.build()


def chosen_by_kueue(snapshot: Snapshot) -> tuple[str, str]:
    decided = decide_heads(snapshot, Profile.kueue())
    (entry,) = decided.entries
    if entry.outcome in (HeadOutcome.ADMITTED, HeadOutcome.PREEMPTING):
        return entry.outcome.value, entry.nomination.flavors["main"][GPU]
    return "waits", ""


def chosen_by_us(snapshot: Snapshot) -> tuple[str, str]:
    plan = decide(snapshot)
    if (found := flavors(plan, "p")) == []:
        return "waits", ""
    outcome = HeadOutcome.PREEMPTING if plan.memory.claims else HeadOutcome.ADMITTED
    return outcome.value, found[0][GPU]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(snapshot=one_head())
def test_one_pod_set_takes_the_flavor_that_kueue_takes(snapshot) -> None:
    assert chosen_by_us(snapshot) == chosen_by_kueue(snapshot)
