"""The quota tree: who was promised what, and the limits on the way up.

Amounts are integers in canonical units. Nothing here changes while a tree lives: what is taken
is the business of :mod:`scheduling.engine.quota`. Source: ``admission.md`` 3.2, ``FORMAT.md`` 4.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from scheduling.engine.snapshot import NOTHING, Cohort, FlavorResource, Quota, Snapshot


class Kind(StrEnum):
    """What a node of the quota tree is."""

    QUEUE = "queue"
    COHORT = "cohort"


class QuotaKey(NamedTuple):
    """A node of the quota tree. A queue and a cohort may share a name."""

    kind: Kind
    name: str


def queue_key(name: str) -> QuotaKey:
    """Return the key of a ClusterQueue."""
    return QuotaKey(Kind.QUEUE, name)


def cohort_key(name: str) -> QuotaKey:
    """Return the key of a Cohort."""
    return QuotaKey(Kind.COHORT, name)


@dataclass(frozen=True, slots=True)
class QuotaNode:
    """A ClusterQueue (leaf) or a Cohort (inner node)."""

    key: QuotaKey
    parent: QuotaKey | None
    quotas: Mapping[FlavorResource, Quota]


class Cell(NamedTuple):
    """One column of one node, as arithmetic needs it.

    ``place`` numbers the cell in the tree; ``guaranteed`` is the part of ``promised`` that is
    never lent (Kueue: local quota); ``limit`` is the borrowing limit, None at a root.
    """

    place: int
    promised: int
    guaranteed: int
    limit: int | None


Line = tuple[Cell, ...]  # one column from a node up to its root


def cohorts_in_cycles(cohorts: Mapping[str, Cohort]) -> frozenset[str]:
    """Return the cohorts from which climbing never ends. Cost: O(cohorts x depth)."""
    return frozenset(name for name in cohorts if _never_ends(name, cohorts))


def _never_ends(name: str, cohorts: Mapping[str, Cohort]) -> bool:
    seen: set[str] = set()
    at: str | None = name
    while at is not None and at not in seen:
        seen.add(at)
        at = cohorts[at].parent if at in cohorts else None
    return at is not None


def quota_tree(snapshot: Snapshot) -> "QuotaTree":
    """Return the whole tree, with the cohorts that are only named.

    Cohorts of a circle stand alone here: their queues are inactive anyway, and no sum hangs.
    """
    circular = cohorts_in_cycles(snapshot.cohorts)
    nodes: dict[QuotaKey, QuotaNode] = {}
    for cohort in snapshot.cohorts.values():
        parent = None if cohort.name in circular else cohort.parent
        key = cohort_key(cohort.name)
        nodes[key] = QuotaNode(key, _cohort_or_none(parent), cohort.quotas)
    for queue in snapshot.cluster_queues.values():
        key = queue_key(queue.name)
        nodes[key] = QuotaNode(key, _cohort_or_none(queue.cohort), queue.quotas)
    for node in list(nodes.values()):
        if node.parent is not None and node.parent not in nodes:
            nodes[node.parent] = QuotaNode(node.parent, None, {})
    return QuotaTree(dict(sorted(nodes.items())))


def _cohort_or_none(name: str | None) -> QuotaKey | None:
    return None if name is None else cohort_key(name)


class QuotaTree:
    """Promises and limits, summed up once. Several ledgers may share one tree."""

    def __init__(self, nodes: Mapping[QuotaKey, QuotaNode]) -> None:
        self.nodes = nodes
        self.children = _children(nodes)
        self._paths = {key: _path(key, nodes) for key in nodes}
        self._heights = _heights(self._paths)
        self._promised = self._sum_promises()
        self.size = 0  # cells numbered so far
        self._cells: dict[tuple[QuotaKey, FlavorResource], Cell] = {}
        self._lines: dict[tuple[QuotaKey, FlavorResource], Line] = {}
        self._members: dict[QuotaKey, tuple[QuotaKey, ...]] = {}
        self._potentials: dict[tuple[QuotaKey, FlavorResource], int] = {}

    # -- what was promised ------------------------------------------------------------------

    def promised(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return the subtree quota: own quota plus what the children can lend."""
        return self._promised.get((key, fr), 0)

    def columns(self) -> frozenset[FlavorResource]:
        """Return every flavor-resource of which anybody was promised anything."""
        return frozenset(fr for _, fr in self._promised)

    def guaranteed(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return the part of :meth:`promised` that is never lent (Kueue: local quota)."""
        limit = self.quota(key, fr).lending_limit
        return 0 if limit is None else max(0, self.promised(key, fr) - limit)

    def potential(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return the ceiling: what the node could take with nothing running anywhere."""
        if (key, fr) not in self._potentials:
            self._potentials[key, fr] = self._potential(self.line(key, fr))
        return self._potentials[key, fr]

    def _potential(self, line: Line) -> int:
        ceiling = line[-1].promised
        for cell in reversed(line[:-1]):
            ceiling += cell.guaranteed
            if cell.limit is not None:
                ceiling = min(ceiling, cell.promised + cell.limit)
        return ceiling

    def quota(self, key: QuotaKey, fr: FlavorResource) -> Quota:
        """Return the node's own line, without limits at a root, where they mean nothing."""
        node = self.nodes[key]
        own = node.quotas.get(fr, NOTHING)
        return own if node.parent is not None else Quota(own.nominal)

    def line(self, key: QuotaKey, fr: FlavorResource) -> Line:
        """Return one column from the node up to its root, for arithmetic."""
        found = self._lines.get((key, fr))
        if found is None:
            found = self._lines[key, fr] = tuple(self._cell(node, fr) for node in self._paths[key])
        return found

    def _cell(self, key: QuotaKey, fr: FlavorResource) -> Cell:
        cell = self._cells.get((key, fr))
        if cell is None:
            limit = self.quota(key, fr).borrowing_limit
            promised, guaranteed = self.promised(key, fr), self.guaranteed(key, fr)
            cell = self._cells[key, fr] = Cell(self.size, promised, guaranteed, limit)
            self.size += 1
        return cell

    # -- where in the tree ------------------------------------------------------------------

    def path(self, key: QuotaKey) -> tuple[QuotaKey, ...]:
        """Return the node, its parent, and so on up to the root."""
        return self._paths[key]

    def root(self, key: QuotaKey) -> QuotaKey:
        """Return the top of the node's tree."""
        return self._paths[key][-1]

    def members(self, key: QuotaKey) -> tuple[QuotaKey, ...]:
        """Return the node and everything below it, sorted."""
        if key not in self._members:
            below = [key]
            for node in below:
                below.extend(self.children.get(node, ()))
            self._members[key] = tuple(sorted(below))
        return self._members[key]

    def height(self, key: QuotaKey) -> int:
        """Return the distance from the node to its furthest leaf."""
        return self._heights[key]

    def _sum_promises(self) -> dict[tuple[QuotaKey, FlavorResource], int]:
        promised: dict[tuple[QuotaKey, FlavorResource], int] = {}
        columns: dict[QuotaKey, set[FlavorResource]] = {}
        for key in sorted(self.nodes, key=lambda key: -len(self._paths[key])):
            quotas, below = self.nodes[key].quotas, self.children.get(key, ())
            columns[key] = set(quotas).union(*(columns[child] for child in below))
            for fr in columns[key]:
                lent = sum(self._lendable(promised, child, fr) for child in below)
                promised[key, fr] = quotas.get(fr, NOTHING).nominal + lent
        return promised

    def _lendable(
        self,
        promised: Mapping[tuple[QuotaKey, FlavorResource], int],
        key: QuotaKey,
        fr: FlavorResource,
    ) -> int:
        amount = promised.get((key, fr), 0)
        limit = self.quota(key, fr).lending_limit
        return amount if limit is None else min(amount, limit)


def _children(nodes: Mapping[QuotaKey, QuotaNode]) -> dict[QuotaKey, tuple[QuotaKey, ...]]:
    below: dict[QuotaKey, list[QuotaKey]] = {}
    for key in sorted(nodes):
        parent = nodes[key].parent
        if parent is not None:
            below.setdefault(parent, []).append(key)
    return {key: tuple(keys) for key, keys in below.items()}


def _path(key: QuotaKey, nodes: Mapping[QuotaKey, QuotaNode]) -> tuple[QuotaKey, ...]:
    path = [key]
    parent = nodes[key].parent
    while parent is not None:
        path.append(parent)
        parent = nodes[parent].parent
    return tuple(path)


def _heights(paths: Mapping[QuotaKey, tuple[QuotaKey, ...]]) -> dict[QuotaKey, int]:
    heights = dict.fromkeys(paths, 0)
    for path in paths.values():
        for distance, node in enumerate(path):
            heights[node] = max(heights[node], distance)
    return heights
