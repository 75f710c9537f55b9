"""Which nodes a pod set may use at all, before anybody asks how full they are."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from scheduling.engine.affinity import admits_node
from scheduling.engine.domains import Domains
from scheduling.engine.ground import Footprint, Ground
from scheduling.engine.machines import Flavor, Node, Taint, Toleration
from scheduling.engine.slices import Grain, Layer, grain_of, layers_of, preferred_of
from scheduling.engine.snapshot import PodSet, Snapshot
from scheduling.engine.terms import PlacementPolicy, TopologyMode
from scheduling.engine.topology import path_of, topology_of
from scheduling.engine.usage import is_gpu
from scheduling.engine.views import Field, Views

REMEMBERED = 10_000  # sites; then the memory starts anew
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


NO_LEVEL = -1


@dataclass(frozen=True, slots=True)
class Site:
    """Where pods of a pod set may stand, and how they are put there.

    ``level``: how deep the domain lies in which all must stand, 1 outermost; 0: as near to each
    other as may be; None: the policy alone decides; ``NO_LEVEL``: there is no such level.
    ``layers``: the slices in which they come, ``grain`` what that means for each level.
    ``preferred``: those in which they should come.
    """

    pod: Footprint
    field: Field
    policy: PlacementPolicy
    level: int | None
    quota_only: bool
    layers: tuple[Layer, ...] = ()
    grain: Grain = ()
    preferred: Layer | None = None


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
        self._scanned = 0
        self._ground: Ground | None = None
        self._views: Views | None = None
        self._fields: dict[object, Field] = {}
        self._sites: dict[tuple[int, tuple[str, ...]], tuple[PodSet, Site]] = {}
        self._of_flavor: dict[str, tuple[Node, ...]] = {}
        self._suitable: dict[object, Suitable] = {}
        self._paths: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {}

    @property
    def ground(self) -> Ground:
        """Return the numbers of nodes and holes, which all rooms of this cluster share."""
        if self._ground is None:
            kinds = {name: self._kind(node) for name, node in self.nodes.items()}
            self._ground = Ground(
                tuple(self.nodes.values()), kinds, keeps=self.snapshot.keeps_for_gpus
            )
        return self._ground

    def _kind(self, node: Node) -> str:
        """Return what kind of node it is: the flavors that it belongs to."""
        flavors = sorted(self.snapshot.flavors.items())
        return ",".join(name for name, flavor in flavors if carries(node, flavor))

    @property
    def views(self) -> Views:
        """Return what is kept of how many pods fit where."""
        if self._views is None:
            self._views = Views(self.ground)
        return self._views

    @cached_property
    def machines(self) -> tuple[str, ...]:
        """Return the flavors that have nodes or once had some, sorted.

        What once had nodes has no room without them; it does not turn into a promise on paper.
        """
        known, once = self.snapshot.flavors, self.snapshot.memory.machines
        return tuple(name for name in sorted(known) if name in once or self.nodes_of(name))

    @property
    def scanned(self) -> int:
        """Return how many nodes were looked at so far: counted work."""
        return self._scanned + self.ground.looked

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

        A flavor that has never had a node asks for none (quota only). Cost: O(nodes)
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

    def site(self, pod_set: PodSet, flavors: Iterable[str]) -> Site:
        """Return where pods of ``pod_set`` may stand under these flavors.

        Remembered for pod sets that are the same object, as those of equal work are.
        """
        key = (id(pod_set), tuple(flavors))
        known = self._sites.get(key)
        if known is None:
            if len(self._sites) >= REMEMBERED:
                self._sites.clear()
            known = self._sites[key] = pod_set, self._site(pod_set, sorted(set(key[1])))
        return known[1]

    def _site(self, pod_set: PodSet, names: list[str]) -> Site:
        suitable, levels = self.suitable(pod_set, names), self.levels(names)
        key = (suitable.nodes, levels)
        if key not in self._fields:
            self._fields[key] = self._field(suitable.nodes, levels)
        pod, level = self.ground.footprint_of(pod_set), level_of(pod_set, levels)
        asked = pod_set.topology.layers if pod_set.topology else ()
        layers = layers_of(levels, asked) or ()
        policy, field = self._policy(names), self._fields[key]
        return Site(
            pod,
            field,
            policy,
            level,
            suitable.quota_only,
            layers,
            grain_of(layers),
            preferred_of(levels, pod_set.topology),
        )

    def _field(self, nodes: tuple[str, ...], levels: tuple[str, ...]) -> Field:
        numbers = self.ground.numbers
        inside = tuple(numbers[name] for name in nodes)
        paths = (
            {numbers[name]: path for name, path in self.paths(levels).items()} if levels else {}
        )
        return Field(inside, Domains(inside, paths, len(levels)))

    def _policy(self, names: list[str]) -> PlacementPolicy:
        """Return the policy of these flavors: of several, that of the first with GPU nodes.

        Pods outside every queue may stand on any: there all flavors have to agree.
        """
        known = self.snapshot.flavors
        flavors = self.flavors(names)
        if not flavors:
            policies = {flavor.policy for flavor in known.values()}
            return policies.pop() if len(policies) == 1 else PlacementPolicy.FRAGMENTATION
        return min(flavors, key=lambda f: (not self._has_gpus(f.name), f.name)).policy

    def _has_gpus(self, flavor: str) -> bool:
        return any(
            is_gpu(r) and n for node in self.nodes_of(flavor) for r, n in node.allocatable.items()
        )

    def _look(self, pod_set: PodSet, names: tuple[str, ...]) -> Suitable:
        placed = tuple(name for name in names if self.nodes_of(name))
        if any(name in self.machines for name in names if name not in placed):
            return Suitable((), {})
        if not self.nodes or (names and not placed):
            return Suitable((), {}, quota_only=True)
        flavors = self.flavors(names)
        paths = self._reachable(pod_set, names)
        good: list[str] = []
        excluded: Counter[str] = Counter()
        kept_away = ""
        for node in self.nodes.values():
            self._scanned += 1
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


def level_of(pod_set: PodSet, levels: tuple[str, ...]) -> int | None:
    """Return how near the pods must stand, as :class:`Site` says it."""
    request = pod_set.topology
    if request is None:
        return None
    if layers_of(levels, request.layers) is None:
        return NO_LEVEL
    if request.mode is TopologyMode.UNCONSTRAINED:
        return None
    if not levels or (request.level is not None and request.level not in levels):
        return NO_LEVEL
    if request.mode is TopologyMode.PREFERRED:
        return 0
    return 1 if request.level is None else levels.index(request.level) + 1


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
