"""What ``Profile.kueue()`` remembers of waiting work from one cycle to the next.

Nobody is woken by the engine: whoever changes the world says so here, and hands the lobby to
the next cycle inside the memory. Source: ``FORMAT.md`` 4.3 to 4.5 and 5.4.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Scan:
    """How far a workload's flavor search came, and when.

    ``tried`` maps "pod set/resource" to the place of the last flavor looked at; a search that
    reached the end of its list is left out, and starts again from the first.
    """

    cycle: int
    shape: str
    changes: int
    tried: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Lobby:
    """Who is set aside, who goes first, and which shapes need not be tried.

    Workloads are named by key, shapes by text. ``changes`` counts by queue what makes an old
    flavor search worthless.
    """

    cycle: int = 0  # cycles that looked at anybody
    parked: tuple[str, ...] = ()
    parked_shapes: tuple[tuple[str, str], ...] = ()  # (queue, shape)
    preemptors: Mapping[str, str] = field(default_factory=dict)
    scans: Mapping[str, Scan] = field(default_factory=dict)
    changes: Mapping[str, int] = field(default_factory=dict)

    def park(self, keys: Iterable[str]) -> "Lobby":
        """Set these workloads aside until something wakes them."""
        return replace(self, parked=tuple(sorted({*self.parked, *keys})))

    def wake(self, keys: Collection[str], queues: Collection[str] = ()) -> "Lobby":
        """Let these workloads stand in line again, and forget the shapes of these queues."""
        return replace(
            self,
            parked=tuple(key for key in self.parked if key not in keys),
            parked_shapes=tuple(pair for pair in self.parked_shapes if pair[0] not in queues),
        )

    def changed(self, queues: Iterable[str]) -> "Lobby":
        """Note that work of these queues came or went, or that their quotas were edited."""
        changes = dict(self.changes)
        for queue in queues:
            changes[queue] = changes.get(queue, 0) + 1
        return replace(self, changes=changes)

    def forget(self, key: str, *, gone: bool = True) -> "Lobby":
        """Drop a workload's flavor search; with ``gone`` also its place as a preemptor."""
        scans = {k: scan for k, scan in self.scans.items() if k != key}
        preemptors = {q: k for q, k in self.preemptors.items() if not gone or k != key}
        return replace(self, scans=scans, preemptors=preemptors)


EMPTY_LOBBY = Lobby()
