"""The two accounts of a cycle: what stands now, and what will stand soon.

``now`` counts everything whose pods still stand, releasing work included. ``soon`` leaves out
what is on its way out and counts the claims instead. New work must fit in both: it may neither
stand on somebody's feet nor take what was freed for another. A preemptor plans in ``soon``
alone, so earlier victims that have not left yet are never the reason for a further eviction.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import FreeCapacity
from scheduling.engine.journal import Journal, Trial
from scheduling.engine.partial import grants
from scheduling.engine.parts import Parts
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import Assignment, FlavorResource, PodSet, Snapshot, Workload
from scheduling.engine.standing import standing
from scheduling.engine.terms import StopPolicy
from scheduling.engine.tree import QuotaKey, QuotaTree, queue_key, quota_tree
from scheduling.engine.usage import charged, paired


@dataclass(frozen=True, slots=True)
class Side:
    """One account: quota and nodes."""

    ledger: QuotaLedger
    room: FreeCapacity


Sides = tuple[Side, ...]
Charge = tuple[tuple[FlavorResource, int], ...]


class Books:
    """Quota and nodes of one snapshot, with one journal for all tables."""

    def __init__(self, snapshot: Snapshot, atlas: Atlas) -> None:
        self.snapshot = snapshot
        self._journal = Journal()
        self.atlas = atlas
        tree = quota_tree(snapshot)
        self.now = self._side(tree)
        self.soon = self._side(tree)
        self.both: Sides = (self.now, self.soon)
        self.coming: Sides = (self.soon,)
        self.staying = QuotaLedger(tree, self._journal)
        self.parts = Parts(self._journal)
        self._keys = {name: queue_key(name) for name in snapshot.cluster_queues}
        self._charges: dict[object, tuple[tuple[PodSet, ...], Charge]] = {}
        self._last: tuple[object, object, Charge] = (None, None, ())  # asked for several times
        for workload in snapshot.workloads:
            if workload.admission is not None:
                sides = (self.now,) if workload.releasing else self.both
                held = standing(workload)
                self.hold(workload, held, sides)
                if not workload.releasing:
                    self.stay(workload, held)

    def _side(self, tree: QuotaTree) -> Side:
        ledger = QuotaLedger(tree, self._journal)
        return Side(ledger, FreeCapacity(self.atlas, self._journal))

    def trial(self) -> Trial:
        """Open a block whose changes to any account are undone unless kept."""
        return self._journal.trial()

    def queue(self, workload: Workload) -> QuotaKey | None:
        """Return the quota node that pays for the workload; None: nobody does."""
        return self._keys.get(workload.queue or "")

    def charge(self, workload: Workload, assignments: Iterable[Assignment]) -> Charge:
        """Return what a workload that stands on ``assignments`` is charged in its queue.

        Remembered for pod sets that are the same object, as those of equal work are.
        """
        pod_sets, last = workload.pod_sets, self._last
        if last[0] is pod_sets and last[1] is assignments:
            return last[2]
        granted = tuple([(a.pod_set, a.count, *a.flavors.items()) for a in assignments])
        known = self._charges.get((id(pod_sets), granted))
        if known is None:
            charge = tuple(charged(workload, assignments).items())
            known = self._charges[id(pod_sets), granted] = pod_sets, charge
        self._last = pod_sets, assignments, known[1]
        return known[1]

    def hold(self, workload: Workload, assignments: Iterable[Assignment], sides: Sides) -> None:
        """Charge a workload's quota and nodes."""
        assignments, queue = tuple(assignments), self.queue(workload)
        charge = self.charge(workload, assignments)
        for side in sides:
            side.room.stand(workload, assignments)
            for fr, amount in charge:
                if queue is not None:
                    side.ledger.reserve(queue, fr, amount)

    def drop(self, workload: Workload, assignments: Iterable[Assignment], sides: Sides) -> None:
        """Undo a :meth:`hold`."""
        assignments, queue = tuple(assignments), self.queue(workload)
        charge = self.charge(workload, assignments)
        for side in sides:
            side.room.stand(workload, assignments, sign=-1)
            for fr, amount in charge:
                if queue is not None:
                    side.ledger.release(queue, fr, amount)

    def stay(self, workload: Workload, assignments: Iterable[Assignment]) -> None:
        """Note that the workload runs on.

        Whether a queue borrows is judged by such work alone: what it has merely claimed is no
        loan yet, and makes nobody in it a victim.
        """
        queue = self.queue(workload)
        for fr, amount in self.charge(workload, assignments):
            if queue is not None:
                self.staying.reserve(queue, fr, amount)

    def leave(self, workload: Workload, assignments: Iterable[Assignment]) -> None:
        """Undo a :meth:`stay`, and free what the workload holds from ``soon`` on."""
        assignments, queue = tuple(assignments), self.queue(workload)
        self.drop(workload, assignments, self.coming)
        for fr, amount in self.charge(workload, assignments):
            if queue is not None:
                self.staying.release(queue, fr, amount)

    def may_get(
        self, workload: Workload, assignments: tuple[Assignment, ...], asked: Workload
    ) -> bool:
        """Return whether what is kept for a workload can still be of use to it.

        ``asked``: the pods for which it needs room; what is kept for other ones is worthless.
        """
        queue = self.snapshot.cluster_queues.get(workload.queue or "")
        if workload.blocked or queue is None or queue.inactive:
            return False
        columns = queue.quotas
        listed = all(
            FlavorResource(flavor, resource) in columns
            for assignment in assignments
            for resource, flavor in assignment.flavors.items()
        )
        open_ = queue.stop_policy is StopPolicy.NONE
        return open_ and listed and grants(asked, assignments)

    def can_stand(
        self, workload: Workload, assignments: tuple[Assignment, ...], sides: Sides
    ) -> bool:
        """Return whether exactly these assignments still fit."""
        if not grants(workload, assignments):
            return False
        queue, usage = self.queue(workload), dict(self.charge(workload, assignments))
        if queue is not None and not within(sides, queue, usage):
            return False
        return all(self._nodes_suit(workload, assignments, side) for side in sides)

    def _nodes_suit(
        self, workload: Workload, assignments: tuple[Assignment, ...], side: Side
    ) -> bool:
        with self.trial():
            for pod_set, assignment in paired(workload, assignments):
                suitable = self.atlas.suitable(pod_set, assignment.flavors.values()).nodes
                for node, pods in assignment.nodes.items():
                    seats = assignment.devices.get(node, ())
                    if node not in suitable or not side.room.bears(node, pod_set, pods, seats):
                        return False
                    side.room.take(node, pod_set, pods, seats)
        return True


def available(sides: Sides, queue: QuotaKey, fr: FlavorResource) -> int:
    """Return what the queue can still take in every one of these accounts."""
    return min(side.ledger.available(queue, fr) for side in sides)


def within(sides: Sides, queue: QuotaKey, usage: Mapping[FlavorResource, int]) -> bool:
    """Return whether the queue can take all of ``usage``."""
    for fr, amount in usage.items():
        for side in sides:
            if amount and amount > side.ledger.available(queue, fr):
                return False
    return True
