"""The cluster of a replay in a file: machines, and what each queue is promised.

Two forms (``docs/concepts/replay.md``): that of public traces, equal nodes and a nominal quota
for each queue; and ours, with kinds of nodes, limits, weights and rights to evict.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from math import inf
from typing import Any, TypeVar

from scheduling.engine.machines import CPU, GPU, MEMORY, PODS, PODS_PER_NODE, Flavor, Node
from scheduling.engine.snapshot import (
    ClusterQueue,
    Cohort,
    FlavorQuotas,
    Memory,
    Preemption,
    Quota,
    ResourceGroup,
    Snapshot,
)
from scheduling.engine.terms import (
    Fairness,
    QueueingStrategy,
    ReclaimWithinCohort,
    StopPolicy,
    WithinClusterQueue,
)
from scheduling.replay.problems import BadFile, Problem

COHORT, KIND = "all", "gpu"
MOST_NODES, MOST = 100_000, 2**62
Choice = TypeVar("Choice", bound=StrEnum)
PUBLIC = {"nodes", "gpus_per_node", "nominal_gpus"}


def read_site(name: str, text: str) -> Snapshot:
    """Return the empty platform of one file. Raises BadFile with every problem by field."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise BadFile(name, [Problem(line, "", str(error))]) from error
    reader = _Reader()
    found = reader.site(content)
    if reader.problems:
        raise BadFile(name, reader.problems)
    return found


def emptied(platform: Snapshot) -> Snapshot:
    """Return a platform as a replay begins on it: nobody there, every node and queue in order."""
    nodes = tuple(replace(node, ready=True, schedulable=True) for node in platform.nodes)
    queues = {
        name: replace(queue, stop_policy=StopPolicy.NONE)
        for name, queue in platform.cluster_queues.items()
    }
    return replace(
        platform,
        now=0.0,
        nodes=nodes,
        cluster_queues=queues,
        workloads=(),
        memory=Memory(),
        shapes=(),
    )


def node_gpus(site: Snapshot) -> int:
    """Return how many GPUs the largest node has."""
    return max((node.allocatable.get(GPU, 0) for node in site.nodes), default=1) or 1


class _Reader:
    """Reads one file; what is wrong is collected by field."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def site(self, content: Any) -> Snapshot:
        """Return the platform, however much of it is wrong."""
        top = self._object("", content)
        if "nominal_gpus" in top:
            top = self._from_public(top)
        self._known("", top, {"nodes", "queues", "fairness", "cohort"})
        nodes = tuple(node for kind in self._kinds(top) for node in kind)
        fairness = self._choice("fairness", top.get("fairness"), Fairness.NONE)
        cohort = top.get("cohort", True)
        if not isinstance(cohort, bool):
            self._wrong("cohort", "must be true or false")
        queues = [self._queue(*one, cohort=bool(cohort)) for one in self._list("queues", top)]
        self._unique("queues", [queue.name for queue in queues])
        names = dict.fromkeys(node.labels["pool"] for node in nodes)
        for number, queue in enumerate(queues):
            for column in queue.quotas:
                if column.flavor not in names:
                    where = f"queues[{number}].nominal.{column.flavor}"
                    self._wrong(where, "no node is of this kind")
        return Snapshot(
            now=0.0,
            flavors={kind: Flavor(kind, {"pool": kind}) for kind in names},
            topologies={},
            nodes=nodes,
            cohorts={COHORT: Cohort(COHORT, fairness=fairness)} if cohort else {},
            cluster_queues={queue.name: queue for queue in queues},
            workloads=(),
        )

    def _from_public(self, top: Mapping[str, Any]) -> dict[str, Any]:
        """Return the form of public traces in ours."""
        self._known("", top, PUBLIC | {"total_gpus"})
        count = self._number("nodes", top.get("nodes"), 1, MOST_NODES)
        gpus = self._number("gpus_per_node", top.get("gpus_per_node"), 1, MOST)
        total = top.get("total_gpus", count * gpus)
        if total != count * gpus and not self.problems:
            self._wrong("total_gpus", f"must be {count} x {gpus} = {count * gpus}, not {total}")
        nominal = self._object("nominal_gpus", top.get("nominal_gpus"))
        queues = [{"name": name, "nominal": amount} for name, amount in nominal.items()]
        return {"nodes": [{"kind": KIND, "count": count, "gpus": gpus}], "queues": queues}

    def _kinds(self, top: Mapping[str, Any]) -> Iterable[list[Node]]:
        first = 0
        for path, value in self._list("nodes", top):
            kind = self._object(path, value)
            self._known(path, kind, {"kind", "count", "gpus", "cpu", "memory"})
            name = self._name(f"{path}.kind", kind.get("kind", KIND))
            count = self._number(f"{path}.count", kind.get("count"), 1, MOST_NODES)
            whole = {PODS: PODS_PER_NODE}
            whole[GPU] = self._number(f"{path}.gpus", kind.get("gpus"), 0, MOST)
            for field, resource, scale in (("cpu", CPU, 1000), ("memory", MEMORY, 1)):
                if field in kind:
                    most = MOST // scale
                    amount = self._number(f"{path}.{field}", kind[field], 1, most)
                    whole[resource] = amount * scale
            numbers = range(first, first := first + count)
            yield [Node(f"node-{n:05d}", {"pool": name}, dict(whole)) for n in numbers]

    def _queue(self, path: str, value: Any, *, cohort: bool) -> ClusterQueue:
        one = self._object(path, value)
        known = {"name", "nominal", "borrowing_limit", "lending_limit", "weight", "strategy"}
        self._known(path, one, known | {"reclaim", "within_queue"})
        limits = {
            field: None
            if one.get(field) is None
            else self._number(f"{path}.{field}", one[field], 0, MOST)
            for field in ("borrowing_limit", "lending_limit")
        }
        nominal = one.get("nominal")
        columns = nominal if isinstance(nominal, dict) else {KIND: nominal}
        flavors = tuple(
            FlavorQuotas(
                kind,
                {GPU: Quota(self._number(f"{path}.nominal", amount, 0, MOST), **limits)},
            )
            for kind, amount in columns.items()
        )
        reclaim = self._choice(f"{path}.reclaim", one.get("reclaim"), ReclaimWithinCohort.NEVER)
        within = self._choice(
            f"{path}.within_queue", one.get("within_queue"), WithinClusterQueue.NEVER
        )
        strategy = self._choice(
            f"{path}.strategy", one.get("strategy"), QueueingStrategy.BEST_EFFORT_FIFO
        )
        weight = one.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < inf:
            self._wrong(f"{path}.weight", "must be a number above 0")
            weight = 1
        return ClusterQueue(
            self._name(f"{path}.name", one.get("name")),
            COHORT if cohort else None,
            (ResourceGroup((GPU,), flavors),),
            Preemption(within, reclaim),
            strategy,
            fair_weight=float(weight),
        )

    # -- single fields ------------------------------------------------------------------------

    def _wrong(self, field: str, message: str) -> None:
        self.problems.append(Problem(0, field, message))

    def _object(self, path: str, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self._wrong(path, "must be an object")
        return {}

    def _known(self, path: str, value: Mapping[str, Any], known: set[str]) -> None:
        for field in value.keys() - known:
            self._wrong(f"{path}.{field}".lstrip("."), "is no field here")

    def _list(self, field: str, top: Mapping[str, Any]) -> list[tuple[str, Any]]:
        value = top.get(field)
        if not isinstance(value, list) or not value:
            self._wrong(field, "must be a list with at least one entry")
            return []
        return [(f"{field}[{number}]", one) for number, one in enumerate(value)]

    def _unique(self, field: str, names: list[str]) -> None:
        for name in dict.fromkeys(n for n in names if names.count(n) > 1):
            self._wrong(field, f"{name} stands twice")

    def _name(self, path: str, value: Any) -> str:
        if isinstance(value, str) and value:
            return value
        self._wrong(path, "must be a name")
        return "?"

    def _number(self, path: str, value: Any, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong(path, f"must be a whole number, not {value!r}")
            return least
        if not least <= value <= most:
            self._wrong(path, f"must be between {least} and {most}, not {value}")
            return least
        return value

    def _choice(self, path: str, value: Any, default: Choice) -> Choice:
        if value is None:
            return default
        kind = type(default)
        if value in [one.value for one in kind]:
            return kind(value)
        self._wrong(path, f"must be one of {', '.join(kind)}, not {value!r}")
        return default
