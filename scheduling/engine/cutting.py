"""Where surplus is cut: which pods of a running gang are those above its minima.

By default those whose nodes come free first. For a preemptor that needs certain nodes it is cut
anew while victims are looked for: the parts of a gang hold the same together, however it is cut.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from scheduling.engine.atlas import NO_LEVEL, Atlas, level_of
from scheduling.engine.books import Books
from scheduling.engine.candidates import Running
from scheduling.engine.gangs import joined
from scheduling.engine.parts import DomainsOf, on_nodes, reduced_by, split, with_pods
from scheduling.engine.snapshot import Assignment, PodSet, Workload
from scheduling.engine.standing import standing
from scheduling.engine.topology import Path
from scheduling.engine.usage import is_gpu
from scheduling.engine.ways import Way

MAX_ORDERS = 8  # orders of nodes that are tried for one preemptor
MAX_NODES = 256  # on which surplus is looked for, for one preemptor


def slice_domains(atlas: Atlas) -> DomainsOf:
    """Return what tells in which domain of its slices' level each node of a role lies.

    It leaves out nodes of which that is open.
    """

    def domains(pod_set: PodSet, assignment: Assignment) -> Mapping[str, Path]:
        levels = atlas.levels(assignment.flavors.values())
        layers = pod_set.topology.layers if pod_set.topology else ()
        if not layers or layers[0].level not in levels:
            return {}
        paths, depth = atlas.paths(levels), levels.index(layers[0].level) + 1
        return {node: paths[node][:depth] for node in assignment.nodes if node in paths}

    return domains


class Cutting:
    """The parts of running gangs, where whoever looks for victims finds them.

    ``intern`` gives equal work the same pod sets.
    """

    def __init__(
        self, books: Books, running: Running, intern: Callable[[Workload], Workload]
    ) -> None:
        self._books, self._running, self._intern = books, running, intern
        self._domains_of = slice_domains(books.atlas)
        self._gangs: dict[str, Workload] = {}  # with surplus, as they stand by now

    def add(self, gang: Workload) -> None:
        """Let a running gang be a possible victim, its surplus piece by piece."""
        parts = self._cut(gang)
        if len(parts) == 1:
            self._running.add(gang, self._books.charge(gang, standing(gang)))
        else:
            self._gangs[gang.key] = gang
            self._put(gang.key, parts)

    def remove(self, gang: Workload) -> None:
        """Undo an :meth:`add`, also of work that has no surplus."""
        self._gangs.pop(gang.key, None)
        for part in self._books.parts.forget(gang.key) or (gang,):
            self._running.remove(part)

    def take(self, key: str, pieces: Iterable[Workload]) -> None:
        """Let surplus leave a gang for good, however that was cut when it was chosen."""
        pieces = tuple(pieces)
        for piece in pieces:
            self._books.leave(piece, standing(piece))
        gang = self._gangs[key]
        left = reduced_by(gang, joined(gang, *map(standing, pieces)))
        self._gangs[key] = left
        self._put(key, self._cut(left))

    def _cut(self, gang: Workload, first: Sequence[str] = ()) -> tuple[Workload, ...]:
        parts = split(gang, self._domains_of, first)
        return tuple(map(self._intern, parts)) if len(parts) > 1 else parts

    def _put(self, key: str, parts: tuple[Workload, ...]) -> None:
        for part in self._books.parts.forget(key):
            self._running.remove(part)
        self._books.parts.learn(key, parts)
        for part in parts:
            self._running.add(part, self._books.charge(part, standing(part)))

    # -- for one preemptor ----------------------------------------------------------------

    @contextmanager
    def by(self, nodes: Sequence[str]) -> Iterator[None]:
        """Look for victims with the surplus of all gangs cut from these nodes first."""
        wanted = set(nodes)
        before = {}
        for key, gang in self._gangs.items():
            if any(node in wanted for one in standing(gang) for node in one.nodes):
                before[key] = self._books.parts.of(gang)
        for key in before:
            self._put(key, self._cut(self._gangs[key], nodes))
        yield
        for key, parts in before.items():
            self._put(key, parts)

    def orders(self, preemptor: Workload, ways: Iterable[Way]) -> list[tuple[str, ...]]:
        """Return from which nodes to cut for a preemptor: those that it could then use.

        First where fewest pods must leave for each pod that comes; then the same domain by
        domain, where its pods must stand in one. Cost: O(nodes on which surplus may be).
        """
        if not self._gangs:
            return []
        largest = max(preemptor.pod_sets, key=_gpus_each)
        names = sorted({f for way in ways for f in way.pinned[largest.name].values()})
        prices = self._prices(largest, names)
        order = sorted(prices, key=lambda node: (prices[node], node))
        if not order:
            return []
        grouped = self._by_domain(largest, names, order)
        return [tuple(order), *grouped][:MAX_ORDERS]

    def _by_domain(
        self, pod_set: PodSet, flavors: Iterable[str], order: Sequence[str]
    ) -> list[tuple[str, ...]]:
        levels = self._books.atlas.levels(flavors)
        depth = level_of(pod_set, levels)
        if depth is None or depth in (0, NO_LEVEL):
            return []
        paths, found = self._books.atlas.paths(levels), dict[Path, list[str]]()
        for node in order:
            if node in paths:
                found.setdefault(paths[node][:depth], []).append(node)
        return [tuple(nodes) for nodes in found.values()]

    def _prices(self, pod_set: PodSet, flavors: Iterable[str]) -> dict[str, float]:
        """Return how many pods of surplus leave each node for each pod that it then takes."""
        suitable = self._books.atlas.suitable(pod_set, flavors).nodes
        on: dict[str, list[Workload]] = {}
        for _, gang in sorted(self._gangs.items()):
            for node in sorted({node for one in standing(gang) for node in one.nodes}):
                if node in suitable:
                    on.setdefault(node, []).append(gang)
        found, room = {}, self._books.soon.room
        for node in sorted(on)[:MAX_NODES]:
            before, taken = room.fitting(node, pod_set), 0
            with self._books.trial():
                for gang in on[node]:
                    pieces = self._on(gang, node)
                    room.stand(gang, pieces, sign=-1)
                    taken += sum(one.count for one in pieces)
                gain = room.fitting(node, pod_set) - max(0, before)
            if gain > 0:
                found[node] = taken / gain
        return found

    def _on(self, gang: Workload, node: str) -> list[Assignment]:
        """Return which of a gang's pods could leave a node, if its surplus were cut there."""
        spare: dict[str, int] = {}
        for piece in self._books.parts.of(gang)[1:]:
            for one in standing(piece):
                spare[one.pod_set] = spare.get(one.pod_set, 0) + one.count
        there = (on_nodes(one, (node,)) for one in standing(gang) if one.pod_set in spare)
        return [with_pods(one, min(one.count, spare[one.pod_set])) for one in there if one]


def _gpus_each(pod_set: PodSet) -> int:
    return sum(amount for name, amount in pod_set.requests.items() if is_gpu(name))
