"""Plays a trace: from instant to instant, never by ticks.

At an instant first everybody ends who is due, then everybody comes, then cycles are run until
none finds more. The cluster is simulated: pods stand when their gang is admitted, run for as long
as the trace says, and are gone when it is evicted. No clock: equal traces give equal tapes.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from scheduling.engine.plan import Admit, Evict, Grow, Move, Shrink
from scheduling.engine.profile import RECOMMENDED, Profile
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.standing import standing
from scheduling.engine.usage import charged
from scheduling.replay.deciders import decider
from scheduling.replay.tape import EVERYTHING, Charge, Hold, Meter, Span, Stay, Tape
from scheduling.replay.trace import Arrival, Trace, gpus_of

Heed = Callable[[int, int], None]  # how many have come, of how many
MOST_CYCLES = 1_000  # at one instant


def _nobody_heeds(_come: int, _of: int) -> None:
    return


def play(
    site: Snapshot,
    trace: Trace,
    profile: Profile = RECOMMENDED,
    heed: Heed = _nobody_heeds,
    counted: Span = EVERYTHING,
) -> Tape:
    """Return what happens to a trace on a site.

    Args:
        site: the platform; work that it holds stands from the first instant on.
        trace: what comes when.
        profile: which rules decide.
        heed: told of progress; what it raises breaks the replay off.
        counted: what figures are of; work that came before only fills the cluster.
    """
    return _Player(site, trace, profile, counted).play(heed)


def nominal_of(site: Snapshot) -> dict[str, dict[FlavorResource, int]]:
    """Return what each queue is promised in each column."""
    return {
        name: {column: quota.nominal for column, quota in queue.quotas.items()}
        for name, queue in site.cluster_queues.items()
    }


class _Player:
    def __init__(self, site: Snapshot, trace: Trace, profile: Profile, counted: Span) -> None:
        self._trace, self._counted = trace, counted
        self._arrivals: Mapping[str, Arrival] = {one.workload.key: one for one in trace.arrivals}
        self._decider = decider(profile, site)
        self._ends: list[tuple[float, str, int]] = []  # when, who, which of its runs
        self._runs: dict[str, int] = {}
        self._charges: dict[str, tuple[Charge, float]] = {}  # what is held, and since when
        self._begun: dict[str, float] = {}  # when the run that is on began
        self._waiting = 0
        times = [one.workload.created_at for one in trace.arrivals]
        self._tape = Tape(first_s=min(times, default=0.0), last_s=max(times, default=0.0))
        self._meter = Meter(self._tape, nominal_of(site), self._tape.last_s, counted)

    def play(self, heed: Heed) -> Tape:
        """Play until nobody runs and nobody comes any more."""
        tape, whole = self._tape, len(self._trace.arrivals)
        for now, come in self._instants():
            tape.instants += 1
            tape.end_s = now
            self._settle(now)
            tape.most_waiting = max(tape.most_waiting, self._waiting)
            heed(come, whole)
        self._close()
        tape.held_idle_gpu_hours = self._decider.held_idle_gpu_hours()
        tape.work = self._decider.work
        return tape

    def _close(self) -> None:
        """Count everybody up to the end, and leave out of the figures what is not counted."""
        tape, counted = self._tape, self._counted
        self._meter.close(tape.end_s)
        done = {stay.key for stay in tape.stays}
        tape.unfinished = tuple(
            key
            for key, one in self._arrivals.items()
            if key not in done and counted.holds(one.workload.created_at)
        )
        tape.stays = [stay for stay in tape.stays if counted.holds(stay.submitted_s)]
        if math.isfinite(counted.start_s):
            tape.first_s = counted.start_s
        if math.isfinite(counted.end_s):
            tape.last_s = tape.end_s = counted.end_s

    def _instants(self) -> Iterator[tuple[float, int]]:
        """Let time pass to the next end or arrival; yield when it is, and how many have come."""
        arrivals, place, now = self._trace.arrivals, 0, -math.inf
        while place < len(arrivals) or self._ends:
            coming = arrivals[place].workload.created_at if place < len(arrivals) else math.inf
            due = self._ends[0][0] if self._ends else math.inf
            wakes = self._decider.wakes_at() if self._waiting else math.inf
            now = min(coming, due, wakes if wakes > now else math.inf)
            self._finish(now)
            while place < len(arrivals) and arrivals[place].workload.created_at <= now:
                self._decider.put(arrivals[place].workload)
                self._waiting += 1
                place += 1
            yield now, place

    def _finish(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, key, run = heapq.heappop(self._ends)
            if self._runs.get(key) != run:
                continue  # it was evicted meanwhile
            arrival = self._arrivals[key]
            self._decider.drop(key)
            self._release(key, now)
            work = arrival.workload
            waited = now - work.created_at - arrival.runs_s
            queue, gpus = work.queue or "", gpus_of(work)
            self._tape.stays.append(
                Stay(key, queue, arrival.team, gpus, work.created_at, now, waited)
            )

    def _settle(self, now: float) -> None:
        """Run cycles until none finds more."""
        for _ in range(MOST_CYCLES):
            moves, more = self._decider.decide(now)
            self._tape.cycles += 1
            self._follow(moves, now)
            if not more:
                return

    def _follow(self, moves: Sequence[Move], now: float) -> None:
        for move in moves:
            match move:
                case Admit():
                    self._start(move.workload, now)
                case Evict():
                    self._evicted(move, now)
                case Grow() | Shrink():
                    self._recharge(move.workload, now)

    def _start(self, key: str, now: float) -> None:
        run = self._runs[key] = self._runs.get(key, 0) + 1
        self._begun[key] = now
        heapq.heappush(self._ends, (now + self._arrivals[key].runs_s, key, run))
        self._waiting -= 1
        self._recharge(key, now)

    def _evicted(self, move: Evict, now: float) -> None:
        key, tape = move.workload, self._tape
        queue = self._arrivals[key].workload.queue or ""
        self._runs[key] += 1  # the end of the run that was broken off does not count
        self._waiting += 1
        self._release(key, now, evicted=True)
        if not self._counted.holds(now):
            return
        tape.evictions += 1
        tape.evicted[queue] += 1
        tape.lost_gpu_hours[queue] += move.lost_gpu_hours  # type: ignore[assignment]

    def _recharge(self, key: str, now: float) -> None:
        """Let what a workload holds be what it stands on."""
        self._release(key, now)
        work = self._decider.running(key)
        if work.admission is None:  # it was evicted in the same cycle
            return
        charge = tuple(charged(work, standing(work)).items())
        self._charges[key] = charge, now
        self._meter.change(work.queue or "", charge, 1, now)

    def _release(self, key: str, now: float, *, evicted: bool = False) -> None:
        queue = self._arrivals[key].workload.queue or ""
        charge, since = self._charges.pop(key, ((), now))
        self._meter.change(queue, charge, -1, now)
        if now > since:
            begun = self._begun[key]
            self._tape.holds.append(Hold(key, queue, charge, since, now, begun, evicted))
