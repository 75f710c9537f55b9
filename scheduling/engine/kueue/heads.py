"""Who stands at the head of each queue, and where a head goes that was not admitted."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from scheduling.engine.kueue.picture import offers
from scheduling.engine.lobby import Lobby, Scan
from scheduling.engine.profile import Profile
from scheduling.engine.snapshot import ClusterQueue, Snapshot, Workload
from scheduling.engine.terms import QueueingStrategy
from scheduling.engine.usage import shape


def shape_of(workload: Workload) -> str:
    """Return a text that is equal for workloads that are interchangeable (``FORMAT`` 4.3)."""
    return repr((workload.priority, *(shape(pod_set) for pod_set in workload.pod_sets)))


def best_effort(queue: ClusterQueue) -> bool:
    """Return whether the next workload may pass a head that does not fit."""
    return queue.queueing_strategy is QueueingStrategy.BEST_EFFORT_FIFO


class Heads:
    """The queues of one snapshot. Nothing here changes; every change is a new lobby."""

    def __init__(self, snapshot: Snapshot, profile: Profile) -> None:
        self._snapshot, self._profile = snapshot, profile
        self._queues = snapshot.cluster_queues

    def arrivals_parked(self, lobby: Lobby) -> Lobby:
        """Park waiting work whose shape has been found not to fit (``FORMAT`` 4.3)."""
        if not self._profile.park_shapes or not lobby.parked_shapes:
            return lobby
        shapes = set(lobby.parked_shapes)
        waiting = (w for line in self.lines(lobby).values() for w in line)
        same = [w.key for w in waiting if (w.queue or "", shape_of(w)) in shapes]
        return lobby.park(same) if same else lobby

    def lines(self, lobby: Lobby) -> dict[str, list[Workload]]:
        """Return the active waiting work of every queue that lets work in, in its order."""
        lines: dict[str, list[Workload]] = {}
        parked = set(lobby.parked)
        for work in self._snapshot.workloads:
            queue = self._queues.get(work.queue or "")
            waits = work.admission is None and not work.blocked and work.key not in parked
            if waits and queue is not None and offers(queue):
                lines.setdefault(queue.name, []).append(work)
        return {
            name: sorted(line, key=lambda work: self._place(work, lobby))
            for name, line in sorted(lines.items())
        }

    def _place(self, work: Workload, lobby: Lobby) -> tuple[float, bool, int, float, str]:
        """Return the place in line: consumption, preemptor, priority, age (``FORMAT`` 4.2)."""
        queue = self._queues[work.queue or ""]
        local = self._snapshot.local_queues.get(work.local_queue)
        consumption = local.consumption if local and queue.usage_based else 0.0
        sticky = (
            self._profile.sticky_preemptor
            and best_effort(queue)
            and lobby.preemptors.get(queue.name) == work.key
        )
        return consumption, not sticky, -work.priority, work.created_at, work.key

    def scan(self, work: Workload, lobby: Lobby) -> Mapping[str, int]:
        """Return where the workload's last flavor search stopped, unless it is outdated."""
        scan = lobby.scans.get(work.key)
        if not self._profile.scan_memory or scan is None or scan.shape != shape_of(work):
            return {}
        at_once = scan.cycle + 1 == lobby.cycle
        unchanged = scan.changes == lobby.changes.get(work.queue or "", 0)
        return scan.tried if at_once or unchanged else {}

    def remember(self, work: Workload, lobby: Lobby, tried: Mapping[str, int]) -> Lobby:
        """Note where a flavor search stopped; nothing where it reached the end."""
        scans = {key: scan for key, scan in lobby.scans.items() if key != work.key}
        if tried and self._profile.scan_memory:
            changes = lobby.changes.get(work.queue or "", 0)
            scans[work.key] = Scan(lobby.cycle, shape_of(work), changes, dict(tried))
        return replace(lobby, scans=scans)

    def set_aside(self, work: Workload, lobby: Lobby, equals: Iterable[Workload]) -> Lobby:
        """Park a head that did not fit; its ``equals`` in line with it, untried."""
        queue = self._queues[work.queue or ""]
        if not best_effort(queue):
            return lobby
        lobby = lobby.park([work.key])
        if not self._profile.park_shapes:
            return lobby
        mine = shape_of(work)
        lobby = lobby.park(other.key for other in equals if shape_of(other) == mine)
        shapes = tuple(sorted({*lobby.parked_shapes, (queue.name, mine)}))
        return replace(lobby, parked_shapes=shapes)
