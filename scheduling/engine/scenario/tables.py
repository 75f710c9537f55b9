"""What is wrong in the quota tables of a scenario (``admission.md`` K2).

Limits without a cohort or parent are no contradiction: they have no effect (``FORMAT.md`` 4.1).
"""

from collections import Counter
from collections.abc import Callable, Iterator

from scheduling.engine.scenario.fields import Problem
from scheduling.engine.scenario.script import Event, Scenario
from scheduling.engine.snapshot import ClusterQueue, FlavorResource

Unknown = Callable[[str, str], bool]  # name, part of the scenario


def contradictions(scenario: Scenario, unknown: Unknown) -> Iterator[Problem]:
    """Yield what is wrong in the tables of queues and cohorts, and in later edits of them."""
    for i, queue in enumerate(scenario.queues):
        for problem in _of_queue(queue, unknown):
            yield Problem(f"cluster_queues[{i}].{problem.path}", problem.message)
    for i, cohort in enumerate(scenario.cohorts):
        for name in sorted({fr.flavor for fr in cohort.quotas}):
            if unknown(name, "flavors"):
                yield Problem(f"cohorts[{i}].resource_groups", f"unknown flavor {name!r}")
    for i, event in enumerate(scenario.events):
        if event.column is not None:
            yield from _of_edit(event, event.column, f"events[{i}]", scenario)


def _of_queue(queue: ClusterQueue, unknown: Unknown) -> Iterator[Problem]:
    resources, flavors = Counter[str](), Counter[str]()
    for j, group in enumerate(queue.groups):
        for resource in group.resources:
            resources[resource] += 1
            if resources[resource] > 1:
                path = f"resource_groups[{j}].covered_resources"
                yield Problem(path, f"{resource!r} is there twice")
        for k, flavor in enumerate(group.flavors):
            path = f"resource_groups[{j}].flavors[{k}]"
            flavors[flavor.flavor] += 1
            if unknown(flavor.flavor, "flavors"):
                yield Problem(f"{path}.name", f"unknown flavor {flavor.flavor!r}")
            if flavor.flavor and flavors[flavor.flavor] > 1:
                yield Problem(f"{path}.name", f"{flavor.flavor!r} is there twice")


def _of_edit(
    event: Event, column: FlavorResource, path: str, scenario: Scenario
) -> Iterator[Problem]:
    queue = next((queue for queue in scenario.queues if queue.name == event.name), None)
    if event.of_cohort or queue is None:
        return
    if column not in queue.quotas:
        where = f"{column.resource!r} of flavor {column.flavor!r}"
        yield Problem(f"{path}.resource", f"the queue has no quota for {where}")
