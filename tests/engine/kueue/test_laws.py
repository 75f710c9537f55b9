"""Laws of ``Profile.kueue()`` on worlds that nobody recorded."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.profile import Profile
from scheduling.engine.scenario.loop import run
from scheduling.engine.scenario.reader import read_scenario

KUEUE = Profile.kueue()
FLAVORS = ("f0", "f1")
QUEUES = ("a", "b", "c")
TREES = (
    [],
    [{"name": "root"}, {"name": "left", "parent": "root"}, {"name": "right", "parent": "root"}],
)
limits = st.one_of(st.none(), st.integers(0, 4))
rights = st.fixed_dictionaries(
    {
        "within_cluster_queue": st.sampled_from(
            ["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
        ),
        "reclaim_within_cohort": st.sampled_from(["Never", "LowerPriority", "Any"]),
        "borrow_within_cohort": st.fixed_dictionaries(
            {"policy": st.sampled_from(["Never", "LowerPriority"])}
        ),
    }
)
searches = st.fixed_dictionaries(
    {
        "when_can_borrow": st.sampled_from(["MayStopSearch", "TryNextFlavor"]),
        "when_can_preempt": st.sampled_from(["MayStopSearch", "TryNextFlavor"]),
    }
)


@st.composite
def lines(draw: st.DrawFn, cohort: str | None) -> dict[str, Any]:
    """A line of a quota table; limits only with a cohort, none above nominal."""
    nominal = draw(st.integers(0, 6))
    if cohort is None:
        return {"nominal": nominal}
    lends = draw(st.one_of(st.none(), st.integers(0, nominal)))
    return {"nominal": nominal, "borrowing_limit": draw(limits), "lending_limit": lends}


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, Any]:
    cohorts = draw(st.sampled_from(TREES))
    homes = [cohort["name"] for cohort in cohorts] or ["pool", None]
    chosen = {name: draw(st.sampled_from(homes)) for name in QUEUES}
    queues = [
        {
            "name": name,
            "cohort": chosen[name],
            "queueing_strategy": draw(st.sampled_from(["BestEffortFIFO", "StrictFIFO"])),
            "preemption": draw(rights),
            "flavor_fungibility": draw(searches),
            "fair_weight": draw(st.sampled_from([0, 0.5, 1, 2])),
            "resource_groups": [
                {
                    "covered_resources": ["gpu"],
                    "flavors": [
                        {"name": f, "resources": {"gpu": draw(lines(chosen[name]))}}
                        for f in FLAVORS
                    ],
                }
            ],
        }
        for name in QUEUES
    ]
    jobs = [draw(jobs_of(number)) for number in range(draw(st.integers(1, 9)))]
    later = [
        {"at_cycle": at, "type": "finish", "workload": f"w{at}"}
        for at in range(2, draw(st.integers(2, 6)))
        if at < len(jobs)
    ]
    return {
        "id": "law",
        "settings": {"fair_sharing": {"enabled": draw(st.booleans())}, "max_cycles": 20},
        "flavors": [{"name": name} for name in FLAVORS],
        "cohorts": cohorts,
        "cluster_queues": queues,
        "local_queues": [{"name": name, "cluster_queue": name} for name in QUEUES],
        "workloads": jobs,
        "events": later,
    }


@st.composite
def jobs_of(draw: st.DrawFn, number: int) -> dict[str, Any]:
    count = draw(st.integers(1, 4))
    pods = {"name": "main", "count": count, "requests": {"gpu": draw(st.integers(1, 2))}}
    if draw(st.booleans()):
        pods["min_count"] = draw(st.integers(1, count))
    return {
        "name": f"w{number}",
        "queue": draw(st.sampled_from(QUEUES)),
        "priority": draw(st.integers(0, 2)),
        "created_at": draw(st.integers(1, 5)),
        "pod_sets": [pods],
    }


def overdrawn(outcome: dict[str, Any], world: dict[str, Any]) -> list[str]:
    """Return the queues above nominal and borrowing limit, and cohorts above what there is."""
    used, bad = outcome["final"]["usage"], []
    total = dict.fromkeys(FLAVORS, 0)
    owned = dict.fromkeys(FLAVORS, 0)
    for queue in world["cluster_queues"]:
        for flavor in queue["resource_groups"][0]["flavors"]:
            line, name = flavor["resources"]["gpu"], flavor["name"]
            amount = used[queue["name"]].get(name, {}).get("gpu", 0)
            limit = line.get("borrowing_limit") if queue["cohort"] else 0
            if limit is not None and amount > line["nominal"] + limit:
                bad.append(f"{queue['name']}/{name}")
            total[name] += amount
            owned[name] += line["nominal"]
    return bad + [name for name in FLAVORS if total[name] > owned[name]]


@given(worlds())
@settings(max_examples=60)
def test_no_cycle_overdraws_a_quota(world: dict[str, Any]) -> None:
    for cycles in (1, 2, 3, 5, 20):
        cut = world | {"settings": world["settings"] | {"max_cycles": cycles}}
        assert overdrawn(run(read_scenario(cut), KUEUE), world) == []


@given(worlds(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_the_order_of_lists_that_mean_nothing_changes_nothing(
    world: dict[str, Any], chance: random.Random
) -> None:
    shuffled = dict(world)
    for part in ("flavors", "cohorts", "cluster_queues", "local_queues", "workloads"):
        shuffled[part] = list(world[part])
        chance.shuffle(shuffled[part])
    assert run(read_scenario(shuffled), KUEUE) == run(read_scenario(world), KUEUE)


@given(worlds())
@settings(max_examples=60)
def test_everybody_is_somewhere(world: dict[str, Any]) -> None:
    final = run(read_scenario(world), KUEUE)["final"]
    names = [*final["admitted"], *final["pending"], *final.get("finished", [])]
    assert sorted(names) == sorted(work["name"] for work in world["workloads"])


@pytest.mark.parametrize("fair", [False, True])
def test_a_large_world_stays_within_its_quotas(fair: bool) -> None:
    queues = [
        {
            "name": f"q{i:02}",
            "cohort": f"org{i % 4}",
            "preemption": {
                "within_cluster_queue": "LowerPriority",
                "reclaim_within_cohort": "Any",
            },
            "resource_groups": [
                {
                    "covered_resources": ["gpu"],
                    "flavors": [
                        {"name": f, "resources": {"gpu": {"nominal": 8}}} for f in FLAVORS
                    ],
                }
            ],
        }
        for i in range(20)
    ]
    jobs = [
        {
            "name": f"w{i:03}",
            "queue": f"q{i % 20:02}",
            "priority": i % 3,
            "created_at": i,
            "pod_sets": [{"name": "m", "count": 1 + i % 5, "requests": {"gpu": 1 + i % 4}}],
        }
        for i in range(300)
    ]
    world = {
        "id": "large",
        "settings": {"fair_sharing": {"enabled": fair}, "max_cycles": 40},
        "flavors": [{"name": name} for name in FLAVORS],
        "cohorts": [{"name": f"org{i}", "parent": "root"} for i in range(4)],
        "cluster_queues": queues,
        "local_queues": [{"name": q["name"], "cluster_queue": q["name"]} for q in queues],
        "workloads": jobs,
    }
    outcome = run(read_scenario(world), KUEUE)
    assert overdrawn(outcome, world) == []
    assert fair or outcome["quiescent"]  # by share, Kueue may go on for ever (FORMAT.md 11)
