"""Scenarios in a few words: ``platform(queue("a", 4), work("x", 2))``."""

from typing import Any

Scenario = dict[str, Any]


def queue(name: str, nominal: int, cohort: str | None = None, **more: Any) -> Scenario:
    line = {"nominal": nominal} | more.pop("limits", {})
    flavors = [{"name": "h100", "resources": {"gpu": line}}]
    groups = [{"covered_resources": ["gpu"], "flavors": flavors}]
    return {"name": name, "cohort": cohort, "resource_groups": groups, **more}


def work(name: str, gpus: int, *, of: str = "a", at: int = 1, **more: Any) -> Scenario:
    pods = {"name": "main", "count": gpus, "requests": {"gpu": 1}, **more.pop("pods", {})}
    return {"name": name, "queue": f"q-{of}", "created_at": at, "pod_sets": [pods], **more}


def running(name: str, gpus: int, **more: Any) -> Scenario:
    held = [{"name": "main", "count": gpus, "flavors": {"gpu": "h100"}}]
    return work(name, gpus, admission={"reserved_at": 1, "pod_sets": held}, **more)


def platform(queues: list[Scenario], workloads: list[Scenario], **more: Any) -> Scenario:
    return {
        "id": "small",
        "flavors": [{"name": "h100"}],
        "cluster_queues": queues,
        "local_queues": [{"name": f"q-{q['name']}", "cluster_queue": q["name"]} for q in queues],
        "workloads": workloads,
        **more,
    }
