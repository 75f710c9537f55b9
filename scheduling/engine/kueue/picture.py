"""The picture of the cluster that one cycle changes: quota, rooms and who runs."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.candidates import Running
from scheduling.engine.journal import Journal, Trial
from scheduling.engine.kueue.rooms import Rooms
from scheduling.engine.profile import Profile
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import (
    Assignment,
    ClusterQueue,
    FlavorResource,
    Memory,
    Snapshot,
    Workload,
)
from scheduling.engine.standing import standing
from scheduling.engine.terms import StopPolicy
from scheduling.engine.tree import QuotaKey, queue_key, quota_tree
from scheduling.engine.usage import charged


def offers(queue: ClusterQueue) -> bool:
    """Return whether the queue lets work in: its own is evicted by nobody otherwise."""
    return queue.stop_policy is StopPolicy.NONE and not queue.inactive


def _platform(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, now=0.0, workloads=(), memory=Memory(), local_queues={})


class Picture:
    """What stands, as one snapshot shows it, and what the cycle adds. Trials undo.

    It may be kept for the next cycle, which is shown only what has changed.
    """

    def __init__(self, snapshot: Snapshot, profile: Profile) -> None:
        self.snapshot, self.profile = snapshot, profile
        self.queues = snapshot.cluster_queues
        self.atlas = Atlas(snapshot)
        self._journal = Journal()
        self.ledger = QuotaLedger(quota_tree(snapshot), self._journal)
        self.rooms = Rooms(self.atlas, self._journal)
        self.admitted: dict[str, Workload] = {}
        self.running = Running(())
        self.show(snapshot)

    def suits(self, snapshot: Snapshot) -> bool:
        """Return whether the platform is still the one of this picture; work may differ."""
        return _platform(snapshot) == _platform(self.snapshot)

    def show(self, snapshot: Snapshot) -> None:
        """Let the picture show this snapshot of the same platform. Cost: O(work that differs)."""
        self.snapshot = snapshot
        now = {
            work.key: work
            for work in snapshot.workloads
            if work.admission is not None and work.queue in self.queues
        }
        for work in [w for key, w in self.admitted.items() if now.get(key) != w]:
            self.remove(work)
            self.running.remove(work)
        for key, work in now.items():
            if self.admitted.get(key) != work:
                self.put_back(work)
                if offers(self.queues[work.queue or ""]):
                    self.running.add(work)
        self.admitted = now

    def trial(self) -> Trial:
        """Open a block whose changes are undone unless kept."""
        return self._journal.trial()

    def put_back(self, work: Workload) -> None:
        """Charge a running workload."""
        self.take(work, standing(work))

    def remove(self, work: Workload) -> None:
        """Undo :meth:`put_back`."""
        assignments = standing(work)
        self.give(queue_key(work.queue or ""), charged(work, assignments))
        self.rooms.stand(work, assignments, sign=-1)

    def take(self, work: Workload, assignments: Iterable[Assignment]) -> None:
        """Charge a workload that stands on ``assignments``."""
        assignments = tuple(assignments)
        self.charge(queue_key(work.queue or ""), charged(work, assignments))
        self.rooms.stand(work, assignments)

    def charge(self, queue: QuotaKey, usage: Mapping[FlavorResource, int]) -> None:
        """Charge quota alone."""
        for fr, amount in usage.items():
            self.ledger.reserve(queue, fr, amount)

    def give(self, queue: QuotaKey, usage: Mapping[FlavorResource, int]) -> None:
        """Undo :meth:`charge`."""
        for fr, amount in usage.items():
            self.ledger.release(queue, fr, amount)

    @contextmanager
    def without(self, keys: Collection[str]) -> Iterator[None]:
        """Look at the picture with these workloads gone; they are back afterwards."""
        with self.trial():
            for key in sorted(keys):
                self.remove(self.admitted[key])
            yield

    def fits(self, queue: QuotaKey, usage: Mapping[FlavorResource, int]) -> bool:
        """Return whether the queue can still take all of ``usage``, borrowing included."""
        return all(n <= self.ledger.available(queue, fr) for fr, n in usage.items() if n)

    def within(self, key: QuotaKey, usage: Mapping[FlavorResource, int]) -> bool:
        """Return whether the node borrows nothing with ``usage`` more."""
        return all(self.ledger.fits_in(key, fr, n) for fr, n in usage.items())

    def borrow_level(self, queue: QuotaKey, usage: Mapping[FlavorResource, int]) -> int:
        """Return how far up the tree ``usage`` would have to be borrowed."""
        return max((self.ledger.borrow_level(queue, fr, n) for fr, n in usage.items()), default=0)
