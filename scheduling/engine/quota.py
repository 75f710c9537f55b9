"""Quota arithmetic over the cohort tree: who may still take how much.

Amounts are integers in canonical units. Nothing here knows about nodes, time or the database.
Source of every formula: ``admission.md`` 3.2, ``FORMAT.md`` 4.1.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from scheduling.engine.journal import Journal, Trial
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


def quota_tree(snapshot: Snapshot) -> dict[QuotaKey, QuotaNode]:
    """Return the whole tree, with the cohorts that are only named, sorted by key.

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
    return dict(sorted(nodes.items()))


def _cohort_or_none(name: str | None) -> QuotaKey | None:
    return None if name is None else cohort_key(name)


class QuotaLedger:
    """The running account of one cycle: promised, used, still available.

    The cycle that builds a ledger owns it. Questions cost O(depth of the tree).
    """

    def __init__(
        self, nodes: Mapping[QuotaKey, QuotaNode], journal: Journal | None = None
    ) -> None:
        self.nodes = nodes
        self.children = _children(nodes)
        self._paths = {key: _path(key, nodes) for key in nodes}
        self._heights = _heights(self._paths)
        self._journal = journal or Journal()
        self._promised = self._sum_promises()
        self._used: dict[tuple[QuotaKey, FlavorResource], int] = {}

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
        path = self._paths[key]
        ceiling = self.promised(path[-1], fr)
        for node in reversed(path[:-1]):
            ceiling += self.guaranteed(node, fr)
            limit = self.quota(node, fr).borrowing_limit
            if limit is not None:
                ceiling = min(ceiling, self.promised(node, fr) + limit)
        return ceiling

    def quota(self, key: QuotaKey, fr: FlavorResource) -> Quota:
        """Return the node's own line, without limits at a root, where they mean nothing."""
        node = self.nodes[key]
        own = node.quotas.get(fr, NOTHING)
        return own if node.parent is not None else Quota(own.nominal)

    # -- what is taken ----------------------------------------------------------------------

    def used(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return what counts against the node: for a cohort, what its children took."""
        return self._used.get((key, fr), 0)

    def borrowed(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return how much of the node's usage lies above what it was promised."""
        return max(0, self.used(key, fr) - self.promised(key, fr))

    def spare(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return the unused part of what the node never lends."""
        return max(0, self.guaranteed(key, fr) - self.used(key, fr))

    def available(self, key: QuotaKey, fr: FlavorResource) -> int:
        """Return how much the node can still take, borrowing included.

        Negative when quota was cut below what is in use: debt, which blocks new work only.
        """
        path = self._paths[key]
        answer = self.promised(path[-1], fr) - self.used(path[-1], fr)
        for node in reversed(path[:-1]):
            limit = self.borrowing_room(node, fr)
            answer = self.spare(node, fr) + (answer if limit is None else min(answer, limit))
        return answer

    def borrowing_room(self, key: QuotaKey, fr: FlavorResource) -> int | None:
        """Return what the node's own borrowing limit still lets it take from its parent."""
        limit = self.quota(key, fr).borrowing_limit
        if limit is None:
            return None
        guaranteed = self.guaranteed(key, fr)
        taken = max(0, self.used(key, fr) - guaranteed)
        return self.promised(key, fr) - guaranteed + limit - taken

    def reserve(self, key: QuotaKey, fr: FlavorResource, amount: int) -> None:
        """Charge ``amount``; what exceeds a guaranteed part bubbles up to the parent."""
        assert amount >= 0, f"cannot reserve {amount}"
        for node in self._paths[key]:
            if not amount:
                return
            spare, used = self.spare(node, fr), self.used(node, fr)
            self._journal.write(self._used, (node, fr), used + amount)
            amount = max(0, amount - spare)

    def release(self, key: QuotaKey, fr: FlavorResource, amount: int) -> None:
        """Undo a :meth:`reserve` of ``amount``; what the parent gave goes back first."""
        for node in self._paths[key]:
            if not amount:
                return
            used = self.used(node, fr)
            assert 0 <= amount <= used, f"{node.name} cannot release {amount} of {used} {fr}"
            self._journal.write(self._used, (node, fr), used - amount)
            amount = min(amount, max(0, used - self.guaranteed(node, fr)))

    def trial(self) -> AbstractContextManager[Trial]:
        """Open a block whose reservations are undone unless kept."""
        return self._journal.trial()

    # -- where in the tree ------------------------------------------------------------------

    def path(self, key: QuotaKey) -> tuple[QuotaKey, ...]:
        """Return the node, its parent, and so on up to the root."""
        return self._paths[key]

    def root(self, key: QuotaKey) -> QuotaKey:
        """Return the top of the node's tree."""
        return self._paths[key][-1]

    def members(self, key: QuotaKey) -> tuple[QuotaKey, ...]:
        """Return the node and everything below it, sorted."""
        below = [key]
        for node in below:
            below.extend(self.children.get(node, ()))
        return tuple(sorted(below))

    def fits_in(self, key: QuotaKey, fr: FlavorResource, amount: int) -> bool:
        """Return whether the node stays within what it was promised with ``amount`` more."""
        return self.used(key, fr) + amount <= self.promised(key, fr)

    def borrow_level(self, key: QuotaKey, fr: FlavorResource, amount: int) -> int:
        """Return the height of the lowest subtree that can supply ``amount`` (K35).

        0 means own nominal. The height of a cohort is the distance to its furthest leaf.
        """
        if self.fits_in(key, fr, amount) or self.nodes[key].parent is None:
            return 0
        for below, node in zip(self._paths[key], self._paths[key][1:], strict=False):
            amount -= self.spare(below, fr)
            if self.fits_in(node, fr, amount):
                return self.height(node)
        return self.height(self.root(key))

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
