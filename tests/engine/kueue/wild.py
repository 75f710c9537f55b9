"""Scenarios beyond the recorded ones: deep trees, several flavors and groups, gangs, topologies.

``wild_scenario(random)`` gives the JSON value of one scenario that may be run as it is.
"""

from random import Random
from typing import Any

Scenario = dict[str, Any]
LEVELS = ["block", "rack", "host"]
TREES: tuple[dict[str, str | None], ...] = (
    {},
    {"top": None},
    {"top": None, "left": "top", "right": "top"},
    {"top": None, "left": "top", "low": "left", "deep": "low", "right": "top"},
)
SEARCHES = ["MayStopSearch", "TryNextFlavor"]


def wild_scenario(random: Random) -> Scenario:
    """Return one scenario; half of them with nodes, some by share, some by usage."""
    placed = random.random() < 0.5
    tree = random.choice(TREES)
    queues = [queue(random, f"q{i}", tree, placed) for i in range(random.randint(1, 5))]
    doors = [
        {
            "name": f"{q['name']}-{i}",
            "cluster_queue": q["name"],
            "fair_weight": random.choice([1, 1, 2, 0]),
            "consumed": {"gpu": random.choice([0, 1, 7.5])},
        }
        for q in queues
        for i in range(2)
    ]
    work = [workload(random, i, doors, placed) for i in range(random.randint(3, 16))]
    settings: Scenario = {"max_cycles": 40, "fair_sharing": {"enabled": random.random() < 0.4}}
    if random.random() < 0.5:
        settings["admission_fair_sharing"] = {
            "usage_half_life_seconds": random.choice([0, 30, 600]),
            "usage_sampling_interval_seconds": 60,
        }
    return {
        "id": "wild",
        "settings": settings,
        "topologies": [{"name": "floor", "levels": LEVELS}] if placed else [],
        "nodes": nodes(random) if placed else [],
        "flavors": flavors(placed),
        "cohorts": [cohort(random, name, parent) for name, parent in tree.items()],
        "cluster_queues": queues,
        "local_queues": doors,
        "workloads": work,
        "events": events(random, queues, doors, work, placed),
    }


def flavors(placed: bool) -> list[Scenario]:
    if not placed:
        taint = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
        return [{"name": "f0"}, {"name": "f1", "node_taints": [taint]}, {"name": "cpu"}]
    return [
        {"name": name, "topology": "floor", "node_labels": {"pool": name}}
        for name in ("f0", "f1", "cpu")
    ]


def nodes(random: Random) -> list[Scenario]:
    found = []
    for pool in ("f0", "f1", "cpu"):
        for i in range(random.randint(1, 6)):
            labels = {"pool": pool, "block": f"b{i // 4}", "rack": f"r{i // 2}"}
            room = {"gpu": random.choice([4, 8]), "cpu": random.choice([16_000, 64_000])}
            found.append(
                {
                    "name": f"{pool}-{i}",
                    "labels": labels,
                    "allocatable": room | ({"pods": 3} if random.random() < 0.2 else {}),
                    "ready": random.random() > 0.1,
                    "used": {"gpu": 1} if random.random() < 0.2 else {},
                }
            )
    return found


def line(random: Random, unit: int, limited: bool) -> Scenario:
    nominal = random.choice([0, 2, 4, 6, 9])
    found = {"nominal": nominal * unit}
    if limited and random.random() < 0.4:
        found["borrowing_limit"] = random.randint(0, 5) * unit
    if limited and random.random() < 0.4:
        found["lending_limit"] = random.randint(0, nominal) * unit
    return found


def cohort(random: Random, name: str, parent: str | None) -> Scenario:
    found: Scenario = {"name": name, "fair_weight": random.choice([0, 0.5, 1, 2])}
    if parent is not None:
        found["parent"] = parent
    if random.random() < 0.6:
        lines = [
            {"name": f, "resources": {"gpu": line(random, 1, parent is not None)}}
            for f in ("f0", "f1")
        ]
        found["resource_groups"] = [{"covered_resources": ["gpu"], "flavors": lines}]
    return found


def queue(random: Random, name: str, tree: dict[str, str | None], placed: bool) -> Scenario:
    home = random.choice([*tree, *tree, None])
    limited = home is not None
    first = random.sample(["f0", "f1"], random.randint(1, 2))
    together = random.random() < 0.5 or placed
    resources = ["gpu", "cpu"] if together else ["gpu"]
    units = {"gpu": 1, "cpu": 4000}
    groups = [
        {
            "covered_resources": resources,
            "flavors": [
                {"name": f, "resources": {r: line(random, units[r], limited) for r in resources}}
                for f in first
            ],
        }
    ]
    if not together:
        own = {"name": "cpu", "resources": {"cpu": line(random, 4000, limited)}}
        groups.append({"covered_resources": ["cpu"], "flavors": [own]})
    reclaim = random.choice(["Never", "LowerPriority", "Any", "Any"])
    found: Scenario = {
        "name": name,
        "queueing_strategy": random.choice(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]),
        "fair_weight": random.choice([0, 0.5, 1, 1, 2]),
        "flavor_fungibility": {
            "when_can_borrow": random.choice(SEARCHES),
            "when_can_preempt": random.choice(SEARCHES),
        },
        "preemption": {
            "within_cluster_queue": random.choice(
                ["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
            ),
            "reclaim_within_cohort": reclaim,
            "borrow_within_cohort": {
                "policy": random.choice(["Never", "LowerPriority"])
                if reclaim != "Never"
                else "Never"
            },
        },
        "resource_groups": groups,
    }
    if home is not None:
        found["cohort"] = home
    if random.random() < 0.2:
        found["admission_mode"] = "UsageBasedAdmissionFairSharing"
    return found


def workload(random: Random, number: int, doors: list[Scenario], placed: bool) -> Scenario:
    return {
        "name": f"w{number:02}",
        "queue": random.choice(doors)["name"],
        "priority": random.choice([0, 0, 5, 10]),
        "created_at": random.randint(1, 60),
        "pod_sets": pod_sets(random, placed),
    }


def pod_sets(random: Random, placed: bool) -> list[Scenario]:
    sets = [pods(random, "main", random.randint(1, 6), placed)]
    if random.random() < 0.25:
        sets.append(pods(random, "lead", 1, placed))
        if placed and random.random() < 0.5:
            for one in sets:
                one["topology_request"] = {"required": "rack", "group": "g"}
    elif random.random() < 0.3:
        sets[0]["min_count"] = random.randint(1, sets[0]["count"])
    return sets


def pods(random: Random, name: str, count: int, placed: bool) -> Scenario:
    found: Scenario = {
        "name": name,
        "count": count,
        "requests": {"gpu": random.choice([1, 1, 2, 4]), "cpu": random.choice([500, 2000])},
    }
    if not placed and random.random() < 0.4:
        found["tolerations"] = [{"key": "spot", "operator": "Exists"}]
    if placed and random.random() < 0.7:
        found["topology_request"] = request(random, count)
    return found


def request(random: Random, count: int) -> Scenario:
    level = random.choice(LEVELS)
    if random.random() < 0.3:
        sizes = [n for n in range(1, count + 1) if count % n == 0]
        inner = random.choice(LEVELS[LEVELS.index(level) :])
        return {"required": level, "slice_required": inner, "slice_size": random.choice(sizes)}
    return random.choice([{"required": level}, {"preferred": level}, {"unconstrained": True}])


def events(
    random: Random,
    queues: list[Scenario],
    doors: list[Scenario],
    work: list[Scenario],
    placed: bool,
) -> list[Scenario]:
    found: list[Scenario] = []
    for number in range(random.randint(0, 6)):
        at, target = random.randint(2, 9), random.choice(work)["name"]
        kind = random.choice(["finish", "delete", "set_priority", "submit", "stop", "advance"])
        match kind:
            case "finish" | "delete":
                found.append({"at_cycle": at, "type": kind, "workload": target})
            case "set_priority":
                priority = random.choice([0, 5, 20])
                found.append(
                    {"at_cycle": at, "type": kind, "workload": target, "priority": priority}
                )
            case "submit":
                fresh = workload(random, 50 + number, doors, placed)
                found.append({"at_cycle": at, "type": kind, "workload": fresh})
            case "stop":
                policy = random.choice(["None", "Hold", "HoldAndDrain"])
                one = random.choice(queues)["name"]
                event = {"type": "set_stop_policy", "cluster_queue": one, "stop_policy": policy}
                found.append({"at_cycle": at, **event})
            case "advance":
                found.append({"at_cycle": at, "type": "advance_clock", "seconds": 120})
    return found
