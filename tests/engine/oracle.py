"""Whether a set of gangs fits on a set of nodes at all: a model for CP-SAT, from the rules alone.

Nothing here uses the engine's books, atlas or search. The world it knows: one queue, everybody
waits, gangs start whole. Kinds of nodes, several resources, pods per node, selectors, taints, the
level that a pod set requires, and the quota.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ortools.sat.python import cp_model

from scheduling.engine.machines import PODS, PODS_PER_NODE, Flavor, Node, Taint, Toleration
from scheduling.engine.snapshot import PodSet, Snapshot, Workload
from scheduling.engine.terms import TopologyMode

Count = cp_model.LinearExprT


class Answer(StrEnum):
    """What the solver found out within its bound."""

    ALL = "all of them fit"
    NOT_ALL = "not all of them fit"
    UNKNOWN = "the bound was reached"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``nodes``: where the pods of each (workload, pod set) stand, if all of them fit."""

    answer: Answer
    nodes: dict[tuple[str, str], dict[str, int]]


def fit_all(snapshot: Snapshot, effort: float = 20.0) -> Verdict:
    """Return whether every gang of the snapshot can run at once.

    ``effort`` bounds the search in the solver's own deterministic time, so that a slow machine
    gives the same verdict.
    """
    model = _Packing(snapshot)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = effort
    status = solver.solve(model.model)
    if status == cp_model.INFEASIBLE:
        return Verdict(Answer.NOT_ALL, {})
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Verdict(Answer.UNKNOWN, {})
    return Verdict(Answer.ALL, model.read(solver))


class _Packing:
    """One variable for the pods of each pod set on each node that may take them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.model = cp_model.CpModel()
        self.pods: dict[tuple[str, str], dict[str, cp_model.IntVar]] = {}
        self.load: dict[tuple[str, str], list[Count]] = {}
        for workload in snapshot.workloads:
            for pod_set in workload.pod_sets:
                self._stand(workload, pod_set)
        for node in snapshot.nodes:
            self._bound(node)
        self._charge()

    def read(self, solver: cp_model.CpSolver) -> dict[tuple[str, str], dict[str, int]]:
        """Return who stands where in the solution."""
        return {
            key: {node: n for node, var in pods.items() if (n := solver.value(var))}
            for key, pods in self.pods.items()
        }

    def _stand(self, workload: Workload, pod_set: PodSet) -> None:
        pods: dict[str, cp_model.IntVar] = {}
        for node in self.snapshot.nodes:
            most = min(pod_set.count, room(node, pod_set)) if self._may(pod_set, node) else 0
            if most:
                pods[node.name] = self.model.new_int_var(0, most, "")
        self.model.add(sum(pods.values()) == pod_set.count)
        self._keep_together(pod_set, pods)
        for name, variable in pods.items():
            for resource, amount in footprint(pod_set).items():
                self.load.setdefault((name, resource), []).append(variable * amount)
        self.pods[workload.key, pod_set.name] = pods

    def _may(self, pod_set: PodSet, node: Node) -> bool:
        kinds = [f for f in self.snapshot.flavors.values() if contains(node.labels, f.node_labels)]
        return any(may_stand(pod_set, node, flavor) for flavor in kinds)

    def _keep_together(self, pod_set: PodSet, pods: dict[str, cp_model.IntVar]) -> None:
        request = pod_set.topology
        if request is None or request.mode is not TopologyMode.REQUIRED:
            return
        (topology,) = self.snapshot.topologies.values()
        depth = topology.levels.index(str(request.level)) + 1
        domains: dict[tuple[str, ...], list[str]] = {}
        for node in self.snapshot.nodes:
            if node.name in pods:
                path = tuple(node.labels[level] for level in topology.levels[:depth])
                domains.setdefault(path, []).append(node.name)
        chosen = {path: self.model.new_bool_var("") for path in domains}
        self.model.add(sum(chosen.values()) == 1)
        for path, names in domains.items():
            inside = sum(pods[name] for name in names)
            self.model.add(inside == pod_set.count * chosen[path])

    def _bound(self, node: Node) -> None:
        for resource, amount in whole(node).items():
            if (node.name, resource) in self.load:
                self.model.add(sum(self.load[node.name, resource]) <= amount)

    def _charge(self) -> None:
        """Every flavor's column bounds what stands on the nodes of that flavor."""
        (queue,) = self.snapshot.cluster_queues.values()
        for column, quota in queue.quotas.items():
            labels = self.snapshot.flavors[column.flavor].node_labels
            loads = (
                self.load.get((node.name, column.resource), [])
                for node in self.snapshot.nodes
                if contains(node.labels, labels)
            )
            self.model.add(sum(term for terms in loads for term in terms) <= quota.nominal)


def contains(labels: dict[str, str] | Counter, wanted: dict[str, str]) -> bool:
    return wanted.items() <= labels.items()


def may_stand(pod_set: PodSet, node: Node, flavor: Flavor) -> bool:
    """Ready, open, of the labels that are asked for, and no taint that keeps the pods away."""
    allowed = (*pod_set.tolerations, *flavor.tolerations)
    return (
        node.ready
        and node.schedulable
        and contains(node.labels, pod_set.node_selector)
        and all(tolerated(taint, allowed) for taint in node.taints)
    )


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return taint.effect == "PreferNoSchedule" or any(
        t.key == taint.key and (t.operator == "Exists" or t.value == taint.value)
        for t in tolerations
    )


def footprint(pod_set: PodSet) -> dict[str, int]:
    """What one pod takes of a node: what it asks for, and a slot."""
    return {**{r: n for r, n in pod_set.requests.items() if n}, PODS: 1}


def whole(node: Node) -> dict[str, int]:
    """What the platform may give of a node."""
    amounts = {PODS: PODS_PER_NODE, **node.allocatable}
    return {r: n - node.unmanaged.get(r, 0) for r, n in amounts.items()}


def room(node: Node, pod_set: PodSet) -> int:
    """How many pods an empty node takes."""
    free = whole(node)
    return min(free.get(r, 0) // n for r, n in footprint(pod_set).items())
