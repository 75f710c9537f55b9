"""The cycle worker: decides on a kept world, writes under the lease, and asks the cluster.

What is decided outside the lease is written under it, and only if nobody else has decided since;
whatever goes wrong, the kept world is thrown away and read anew (``decisions.md`` 2 and 4).
"""

import gc
import logging
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings

from gpuplatform.common import clock, leases
from scheduling import cycle, meter, reconciler
from scheduling.applier import apply_plan
from scheduling.cycle import CycleReport
from scheduling.engine.desk import Desk
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Admit, Hold, Plan
from scheduling.engine.snapshot import Snapshot, Workload
from scheduling.engine.terms import PendingReason
from scheduling.kept import Kept, stable
from scheduling.past_use import PAUSE
from scheduling.proof import differences

ROUNDS = 20  # of one wake-up; what is left waits for the next
LOOK_S = 1.0  # between two looks at the cluster, when nothing moves
CHECK_S = 60.0  # between two comparisons of what is kept with the rows
EXPLAINED_AT_ONCE = 300  # waiting workloads that are told why in each cycle
PORTION = 1_000  # of more than that, so many at a time: whatever happens meanwhile waits for them
SHARE = 20  # reasons take a twentieth of the time at most, while anything moves
CALM_S = 1.0  # between two tellings of many reasons, at least; and for so long, while nothing does
EVIDENCE_OF = 500  # workloads up to which each cycle that decides keeps its evidence
EVIDENCE_S = 60.0  # between two cycles that do, in a larger world
EVIDENCE_MOST = 5_000  # workloads; of a larger world only faults are kept

logger = logging.getLogger(__name__)


class Worker:
    """One process at a time does this. Killed at any instant, it leaves nothing half done."""

    def __init__(self) -> None:
        self._holder = leases.unique_holder()
        self._kept: Kept | None = None
        self._now: datetime | None = None  # of the last cycle
        self._looked: datetime | None = None  # when the cluster was asked last
        self._beaten: datetime | None = None
        self._checked: datetime | None = None
        self._told, self._telling_took, self._told_last = -CALM_S, 0.0, ""
        self._evidence = -EVIDENCE_S

    def turn(self) -> None:
        """Decide and ask the cluster in turn until nothing moves.

        Everything that is due is done: whoever calls need not know why it was woken.
        """
        with undisturbed():
            self._turn()

    def _turn(self) -> None:
        quiet = True
        for _ in range(ROUNDS):
            decided = self.decide()
            if not decided.ran:
                break  # somebody else decides; the next beat looks again
            looked = self._look() if decided.moved or _is_over(self._looked, LOOK_S) else None
            if not decided.moved and not (looked and looked.moved):
                break
            quiet = False
        self.explain()
        if quiet:
            self._explain_on()
        self._check()
        self._beat()

    def _look(self) -> reconciler.ReconcileReport:
        self._looked = clock.now()
        kept, self._kept = self._kept, None  # unless everything goes well
        report = reconciler.reconcile(holder=self._holder, kept=kept)
        self._kept = kept
        return report

    def forget(self) -> None:
        """Throw the kept world away; the next cycle reads it anew."""
        self._kept = None

    def _beat(self) -> None:
        """Say once in a while that somebody looks, though there is nothing to decide."""
        if _is_over(self._beaten, settings.CYCLE_LEASE_S):
            self._beaten = clock.now()
            leases.beat(leases.CYCLE)

    def _check(self) -> None:
        """Compare what is kept with the rows once in a while; what differs is an alarm, and gone.

        What has been noted since the last cycle is no difference: the next one takes it in.
        """
        if not _is_over(self._checked, CHECK_S):
            return
        self._checked = clock.now()
        kept = self._kept
        if kept is None or kept.is_outdated() or kept.news():
            return
        found = differences(kept)
        if found and not (kept.news() or kept.is_outdated()):
            logger.critical("the kept world is not as the rows are: %s", "; ".join(found[:10]))
            self.forget()

    # -- deciding -----------------------------------------------------------------------------
    def decide(self) -> CycleReport:
        """Run one cycle. Without anything to write, nothing is written, not even that it ran."""
        began = time.monotonic()
        now = clock.now()
        kept = self._up_to_date(now)
        before, memory = dict(kept.state.workloads), kept.state.memory()
        desk = soundly(kept, before, now)
        if desk is None:
            self.forget()
            return cycle.run_cycle(self._holder)  # it finds out in which tree the fault is
        news = kept.touched or kept.is_new or kept.has_let_go
        quiet = not (desk.moves or news)
        if quiet and stable(memory) == stable(kept.state.memory()):
            return CycleReport()
        report = self._write(kept, desk, before, began)
        for line in report.lines:
            logger.info("%s", line)
        return report

    def _up_to_date(self, now: datetime) -> Kept:
        """Return the kept world with all changes taken in, or a fresh one."""
        kept, passed = self._kept, now - (self._now or now)
        self._now = now
        awake = timedelta() <= passed <= PAUSE  # not paused, and no clock was set back
        known = kept is not None and awake and not kept.is_outdated()
        if kept is not None and known and kept.feed(kept.news()):
            return kept
        self._kept = None
        gc.unfreeze()
        self._kept = Kept.read(now)
        gc.collect()
        gc.freeze()  # a world that stays need not be searched for garbage again and again
        return self._kept

    def _write(
        self, kept: Kept, desk: Desk, before: Mapping[str, Workload], began: float
    ) -> CycleReport:
        """Write what was decided as one transaction, if nobody else has decided since."""
        self._kept = None  # unless everything goes well
        with leases.transaction_under(leases.CYCLE, self._holder, settings.CYCLE_LEASE_S) as held:
            if held is None or kept.is_outdated():
                return CycleReport(ran=held is not None, stale=len(desk.moves))
            report = self._write_under(held, kept, desk, before, began)
        self._kept = kept
        return report

    def _write_under(
        self,
        held: leases.Held,
        kept: Kept,
        desk: Desk,
        before: Mapping[str, Workload],
        began: float,
    ) -> CycleReport:
        _catch_up(kept, before)
        evident = bool(desk.moves) and self._is_evident(len(before))
        plan = Plan(tuple(desk.moves), work=dict(sorted(desk.work.items())))
        if evident:
            plan = replace(plan, decisions=(*plan.decisions, *kept.holds(desk)))
        applied = apply_plan(plan, kept.world, before)
        # A grown copy becomes the work itself, as its rows say now.
        grown = [move.workload for move in desk.moves if isinstance(move, Admit) and move.replaces]
        if anew := _uids({*applied.stale, *grown}, before, kept):
            kept.take_in([kept.world.faces[key].uid for key in sorted(anew)])
        if applied.moved:
            _meter_moves(kept, desk, before)
        kept.unsaid = set() if evident else kept.unsaid | kept.wards_of(_queues(desk, before))
        plan = replace(plan, memory=kept.state.memory())
        row = cycle.row_of(held, kept.world.now, kept.last_change, began)
        snapshot = None
        if evident:
            self._evidence = time.monotonic()
            snapshot = replace(kept.world.snapshot, workloads=tuple(before.values()))
        cycle.record(row, snapshot, plan, applied)
        kept.settled(row.pk, row.at)
        return cycle.report_of(row, applied)

    def _is_evident(self, works: int) -> bool:
        """Return whether this cycle keeps snapshot and plan; large worlds do so once a minute."""
        due = time.monotonic() - self._evidence >= EVIDENCE_S
        return works <= EVIDENCE_OF or (works <= EVIDENCE_MOST and due)

    # -- reasons ------------------------------------------------------------------------------
    def explain(self) -> int:
        """Tell who waits why, where anything near them has changed; return how many were told.

        Few are told at once; many in portions, as often as a small share of the time allows.
        """
        kept = self._kept
        if kept is None or not kept.unsaid:
            return 0
        wait = max(CALM_S, SHARE * self._telling_took)
        if kept.waiting(kept.unsaid) <= EXPLAINED_AT_ONCE:
            return self._tell(kept, list(kept.unsaid))
        if time.monotonic() - self._told < wait:
            return 0
        return self._tell(kept, kept.portion(PORTION, self._told_last))

    def _explain_on(self) -> None:
        """Go on telling while nothing else is to be done, but not for long."""
        began = time.monotonic()
        while (kept := self._kept) and kept.unsaid and time.monotonic() - began < CALM_S:
            if kept.news() or not self._tell(kept, kept.portion(PORTION, self._told_last)):
                return

    def _tell(self, kept: Kept, queues: list[str]) -> int:
        began = time.monotonic()
        holds = kept.holds(queues=set(queues))
        self._kept = None
        with leases.transaction_under(leases.CYCLE, self._holder, settings.CYCLE_LEASE_S) as held:
            if held is None or kept.is_outdated():
                return 0
            told = apply_plan(Plan(tuple(holds)), kept.world, kept.state.workloads).held
        kept.unsaid.difference_update(queues)
        self._kept, self._told_last = kept, queues[-1]
        self._told = time.monotonic()
        self._telling_took = self._told - began
        return told


@contextmanager
def undisturbed() -> Iterator[None]:
    """Look for garbage after the block, not hundreds of times within it.

    What a turn makes lives until its end; searching all of it again and again took a quarter of
    the time of a large one.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _is_over(since: datetime | None, seconds: float) -> bool:
    """Return whether so many seconds have passed, or nobody can say: a clock may be set back."""
    passed = None if since is None else (clock.now() - since).total_seconds()
    return passed is None or not 0 <= passed < seconds


def soundly(kept: Kept, before: Mapping[str, Workload], now: datetime) -> Desk | None:
    """Return the moves of a cycle that breaks no law; None where there is a fault of ours."""
    try:
        desk = kept.advance(now)
        faults = _broken(kept, desk, before)
    except Exception:
        logger.exception("a cycle on a kept world broke off; the world is read anew")
        return None
    if faults:
        logger.error("a cycle on a kept world broke a law: %s", "; ".join(faults))
        return None
    return desk


def _catch_up(kept: Kept, before: Mapping[str, Workload]) -> None:
    """Write what follows from edits and from the cluster's news before anything is decided."""
    if kept.is_new:
        meter.note_supply(kept.world)
    if kept.touched:
        kept.read_touched()
        meter.follow(
            kept.world,
            at=meter.edited_at(kept.world),
            snapshot=kept.held_in({*kept.touched, ""}, before),
            standing=kept.standing,
            within=None if kept.is_new else kept.touched,
        )
    kept.touched, kept.is_new, kept.has_let_go = set(), False, False


def _meter_moves(kept: Kept, desk: Desk, before: Mapping[str, Workload]) -> None:
    """Open and close intervals with what was written; whole trees, for loans shift in them."""
    trees = {name for queue in _queues(desk, before) for name in kept.tree(queue)}
    meter.follow(
        kept.world,
        at=kept.world.now,
        snapshot=kept.held_in({*trees, ""}),
        standing=kept.standing,
        within=trees,
    )


def _queues(desk: Desk, before: Mapping[str, Workload]) -> set[str]:
    """Return the queues in which somebody moved."""
    return {before[move.workload].queue or "" for move in desk.moves}


def _uids(stale: Collection[str], before: Mapping[str, Workload], kept: Kept) -> set[str]:
    """Return the workloads behind keys that may stand for their growth."""
    found = {before[key].replaces or key for key in stale if key in before}
    return {key for key in found if key in kept.world.faces}


def _broken(kept: Kept, desk: Desk, before: Mapping[str, Workload]) -> tuple[str, ...]:
    """Return which laws the moves break, told from the part of the world that can feel them."""
    if not desk.moves:
        return ()
    snapshot, memory = kept.world.snapshot, kept.state.memory()
    known = snapshot.memory
    named = {one.workload for one in (*known.claims, *memory.claims)}
    named |= {one.workload for one in (*known.reservations, *memory.reservations)}
    named &= before.keys()
    queues = kept.wards_of({*_queues(desk, before), *(before[key].queue for key in named), ""})
    moved = {move.workload for move in desk.moves}
    held = (work.key for work in kept.held(before) if (work.queue or "") in queues)
    near = [before[key] for key in dict.fromkeys((*held, *sorted(moved | named)))]
    waits = [
        Hold(work.key, PendingReason.PENDING_EVALUATION, ())
        for work in near
        if work.admission is None and work.key not in moved
    ]
    part: Snapshot = replace(snapshot, workloads=tuple(near))
    return violations(part, Plan((*desk.moves, *waits), memory))
