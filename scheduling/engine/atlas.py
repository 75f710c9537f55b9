"""Which nodes a pod set may use at all, before anybody asks how full they are."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from scheduling.engine.affinity import admits_node
from scheduling.engine.machines import Flavor, Node, Taint, Toleration
from scheduling.engine.snapshot import PodSet, Snapshot
from scheduling.engine.topology import path_of, topology_of

_HARD_EFFECTS = ("NoSchedule", "NoExecute")  # PreferNoSchedule never keeps a pod away (K1)


@dataclass(frozen=True, slots=True)
class Suitable:
    """The nodes that may take the pods, and how many were set aside for which reason.

    ``quota_only``: these flavors have no nodes, so nothing has to be placed.
    ``taint`` names a taint that keeps pods away, if one does.
    """

    nodes: tuple[str, ...]
    excluded: dict[str, int]
    quota_only: bool = False
    taint: str = ""


def untolerated(
    taints: Iterable[Taint], pod_set: PodSet, flavors: Iterable[Flavor]
) -> Taint | None:
    """Return the first hard taint that neither the pods nor their flavors tolerate."""
    allowed: list[Toleration] = [*pod_set.tolerations]
    for flavor in flavors:
        allowed.extend(flavor.tolerations)
    for taint in taints:
        hard = taint.effect in _HARD_EFFECTS
        if hard and not any(toleration.tolerates(taint) for toleration in allowed):
            return taint
    return None


def taint_text(taint: Taint) -> str:
    """Return a taint in kubectl's notation."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def carries(node: Node, flavor: Flavor) -> bool:
    """Return whether the node is of this flavor."""
    return flavor.node_labels.items() <= node.labels.items()


class Atlas:
    """Nodes, flavors and topologies of one snapshot, with remembered answers."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.nodes = {node.name: node for node in sorted(snapshot.nodes, key=lambda n: n.name)}
        self.scanned = 0
        self._of_flavor: dict[str, tuple[Node, ...]] = {}
        self._suitable: dict[object, Suitable] = {}
        self._paths: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}

    def flavors(self, names: Iterable[str]) -> tuple[Flavor, ...]:
        """Return the flavors of these names, sorted; unknown ones are left out."""
        known = self.snapshot.flavors
        return tuple(known[name] for name in sorted(set(names)) if name in known)

    def nodes_of(self, flavor: str) -> tuple[Node, ...]:
        """Return every node of the flavor, healthy or not."""
        if flavor not in self._of_flavor:
            wanted = self.flavors([flavor])
            found = [n for n in self.nodes.values() if any(carries(n, f) for f in wanted)]
            self._of_flavor[flavor] = tuple(found)
        return self._of_flavor[flavor]

    def levels(self, flavors: Iterable[str]) -> tuple[str, ...]:
        """Return the topology levels in force for pods of these flavors, outermost first."""
        topology = topology_of(self.snapshot, self.flavors(flavors))
        return topology.levels if topology else ()

    def paths(self, levels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Return the path of every node that carries all the levels."""
        if levels not in self._paths:
            found = {name: path_of(node, levels) for name, node in self.nodes.items()}
            self._paths[levels] = {name: path for name, path in found.items() if path}
        return self._paths[levels]

    def suitable(self, pod_set: PodSet, flavors: Iterable[str]) -> Suitable:
        """Return the nodes that may take pods of ``pod_set`` under these flavors.

        A flavor without any node in the snapshot asks for none (quota only). Cost: O(nodes)
        once for each combination of flavors, selector, tolerations and affinity.
        """
        names = tuple(sorted(set(flavors)))
        key = (
            names,
            tuple(sorted(pod_set.node_selector.items())),
            pod_set.tolerations,
            pod_set.topology,
            pod_set.affinity,
        )
        if key not in self._suitable:
            self._suitable[key] = self._look(pod_set, names)
        return self._suitable[key]

    def _look(self, pod_set: PodSet, names: tuple[str, ...]) -> Suitable:
        placed = tuple(name for name in names if self.nodes_of(name))
        if not self.nodes or (names and not placed):
            return Suitable((), {}, quota_only=True)
        flavors = self.flavors(names)
        paths = self._reachable(pod_set, names)
        good: list[str] = []
        excluded: Counter[str] = Counter()
        kept_away = ""
        for node in self.nodes.values():
            self.scanned += 1
            if not all(carries(node, flavor) for flavor in self.flavors(placed)):
                continue
            why, taint = exclusion(node, pod_set, flavors)
            if not why and paths is not None and node.name not in paths:
                why = "topology"
            kept_away = kept_away or taint
            if why:
                excluded[why] += 1
            else:
                good.append(node.name)
        return Suitable(tuple(good), dict(sorted(excluded.items())), taint=kept_away)

    def _reachable(
        self, pod_set: PodSet, names: tuple[str, ...]
    ) -> dict[str, tuple[str, ...]] | None:
        """Return the paths that count; None where a missing label does not matter."""
        declared = any(flavor.topology for flavor in self.flavors(names))
        if pod_set.topology is None and not declared:
            return None
        return self.paths(self.levels(names))


def exclusion(node: Node, pod_set: PodSet, flavors: tuple[Flavor, ...]) -> tuple[str, str]:
    """Return what keeps the pods off the node, in a word, and the taint if it is one."""
    if not node.ready:
        return "not_ready", ""
    if not node.schedulable:
        return "cordoned", ""
    if not pod_set.node_selector.items() <= node.labels.items():
        return "selector", ""
    if not admits_node(pod_set.affinity, node):
        return "affinity", ""
    taint = untolerated(node.taints, pod_set, flavors)
    return ("taint", taint_text(taint)) if taint else ("", "")
