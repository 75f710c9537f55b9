"""Who decides in a replay: the engine under either profile, fed by changes.

Both keep their state between cycles. What a cycle decides takes effect at once: victims have
left, and wait again at their old place.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from scheduling.engine.cycle import advance
from scheduling.engine.kueue.cycle import Board, Entry, HeadOutcome, decide_heads
from scheduling.engine.parts import leaving_key
from scheduling.engine.plan import Admit, Evict, Move, Shrink
from scheduling.engine.profile import Profile
from scheduling.engine.renewal import renewed
from scheduling.engine.snapshot import Admission, Snapshot, Workload
from scheduling.engine.state import State
from scheduling.engine.tenure import lost_gpu_hours
from scheduling.engine.terms import EvictionReason


class Decider(Protocol):
    """One engine at work on one cluster."""

    work: Counter[str]  # counted work of all cycles

    def put(self, workload: Workload) -> None:
        """Let a workload wait."""

    def drop(self, key: str) -> None:
        """Let a workload be gone."""

    def running(self, key: str) -> Workload:
        """Return a workload as it stands."""

    def decide(self, now: float) -> tuple[Sequence[Move], bool]:
        """Run one cycle. Returns its moves, and whether another one may find more."""

    def wakes_at(self) -> float:
        """Return when time alone may change a decision, by what is known now."""

    def held_idle_gpu_hours(self) -> float:
        """Return what has been held idle for blocked gangs."""


class Everybody:
    """``recommended``: the kept state; a cycle goes on until nobody fits."""

    def __init__(self, site: Snapshot) -> None:
        self.state = State(site)
        self.work: Counter[str] = Counter()
        self._last: dict[str, float] = {}  # GPU-seconds held idle, by gang, as last told
        self._idle_s = 0.0

    def put(self, workload: Workload) -> None:
        """Let a workload wait."""
        self.state.put(workload)

    def drop(self, key: str) -> None:
        """Let a workload be gone."""
        self.state.drop(key)

    def running(self, key: str) -> Workload:
        """Return a workload as it stands."""
        return self.state.workloads[key]

    def decide(self, now: float) -> tuple[Sequence[Move], bool]:
        """Run one cycle; whoever was evicted has left when it ends."""
        state = self.state = renewed(self.state)
        desk = advance(state, now)
        for name, count in desk.work.items():
            self.work[name] += count
        for one in state.reservations.standing() if state.reservations else ():
            before = self._last.get(one.workload, 0.0)
            again = one.idle_gpu_seconds < before  # a new turn counts from the beginning
            self._idle_s += one.idle_gpu_seconds - (0.0 if again else before)
            self._last[one.workload] = one.idle_gpu_seconds
        more = False
        for move in desk.moves:
            match move:
                case Evict():
                    gone = state.workloads[move.workload]
                    state.put(replace(gone, admission=None, releasing=False))
                    more = True
                case Shrink():
                    state.drop(leaving_key(move.workload))
                    more = True
        return desk.moves, more

    def wakes_at(self) -> float:
        """Return when running work first loses the protection of its minimum runtime."""
        return self.state.wakes_at()

    def held_idle_gpu_hours(self) -> float:
        """Return what has been held idle for blocked gangs."""
        return self._idle_s / 3600.0


class Heads:
    """``kueue``: one head of each queue in a cycle. Cost of a cycle: O(all that waits)."""

    def __init__(self, site: Snapshot, profile: Profile) -> None:
        self._site, self._profile, self._board = site, profile, Board(profile)
        self.works = {work.key: work for work in site.workloads}
        self._lobby = site.memory.lobby
        self.work: Counter[str] = Counter()

    def put(self, workload: Workload) -> None:
        """Let a workload wait."""
        self.works[workload.key] = workload

    def drop(self, key: str) -> None:
        """Let a workload be gone, and wake whoever was set aside."""
        gone = self.works.pop(key)
        self._lobby = self._lobby.forget(key)
        self._wake(gone)

    def _wake(self, left: Workload) -> None:
        self._lobby = self._lobby.changed([left.queue or ""])
        self._lobby = self._lobby.wake(self.works.keys(), self._site.cluster_queues.keys())

    def running(self, key: str) -> Workload:
        """Return a workload as it stands."""
        return self.works[key]

    def decide(self, now: float) -> tuple[Sequence[Move], bool]:
        """Run one cycle. Another one may find more as long as anybody was looked at."""
        works = tuple(self.works.values())
        memory = replace(self._site.memory, lobby=self._lobby)
        snapshot = replace(self._site, now=now, workloads=works, memory=memory)
        before = self._lobby.parked
        decided = decide_heads(snapshot, self._profile, self._board)
        self._lobby = decided.lobby
        moves: list[Move] = []
        for entry in decided.entries:
            self.work["heads"] += 1
            moves += self._follow(entry, now)
        return moves, bool(moves) or decided.lobby.parked != before

    def _follow(self, entry: Entry, now: float) -> list[Move]:
        """Let one decision take effect. Grown copies do not occur in traces."""
        key = entry.workload.key
        if entry.outcome is HeadOutcome.ADMITTED:
            held = Admission(now, entry.assignments)
            self.works[key] = replace(entry.workload, admission=held)
            self._lobby = self._lobby.changed([entry.queue.name])
            return [Admit(key, entry.assignments)]
        if entry.outcome is not HeadOutcome.PREEMPTING:
            return []
        moves: list[Move] = []
        for victim in entry.victims:
            work = self.works[victim.workload.key]
            lost = lost_gpu_hours(work, now)
            reason = EvictionReason.PREEMPTED
            moves.append(Evict(work.key, reason, key, victim.right, lost_gpu_hours=lost))
            self.works[work.key] = replace(work, admission=None)
            self._lobby = self._lobby.forget(work.key)
            self._wake(work)
        return moves

    def wakes_at(self) -> float:
        """Return never: Kueue knows no minimum runtime."""
        return math.inf

    def held_idle_gpu_hours(self) -> float:
        """Return 0: Kueue keeps no nodes for blocked gangs."""
        return 0.0


def decider(profile: Profile, site: Snapshot) -> Decider:
    """Return the engine of a profile at work on a site."""
    return Everybody(site) if profile.drain else Heads(site, profile)
