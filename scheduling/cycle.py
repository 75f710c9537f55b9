"""One cycle against the database: load, decide, apply, meter. Nobody else writes a plan."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from gpuplatform.common import leases
from scheduling import meter
from scheduling.applied import ApplyReport
from scheduling.applier import apply_plan
from scheduling.engine import codec
from scheduling.engine.plan import Plan
from scheduling.engine.quarantine import Verdict, decide_soundly
from scheduling.engine.snapshot import Snapshot
from scheduling.loader import Loaded, load
from scheduling.models import Cycle

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What a cycle did. ``ran`` false: another process was deciding, nothing was read or written.

    ``resized`` counts running gangs that got or lost surplus. ``lines`` says each decision that
    was written in words. ``quarantined`` names the trees that were left out because the engine's
    own check found a fault in them; ``refused`` says the faults for which nothing at all was
    written.
    """

    ran: bool = True
    admitted: int = 0
    evicted: int = 0
    held: int = 0
    stale: int = 0
    cycle_id: int | None = None
    lines: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    resized: int = 0
    look_again_at: datetime | None = None

    @property
    def moved(self) -> bool:
        """Return whether the next cycle may find another world."""
        return bool(self.admitted or self.evicted or self.resized or self.stale)


def run_cycle(holder: str | None = None) -> CycleReport:
    """Run one cycle as one transaction of the only process that may decide.

    With nothing to do it changes nothing but its own record. Killed at any instant, it leaves
    nothing, and the lease expires.
    """
    holder = holder or leases.unique_holder()
    with leases.transaction_under(leases.CYCLE, holder, settings.CYCLE_LEASE_S) as held:
        report = _run(held) if held else CycleReport(ran=False)
    for line in report.lines:
        logger.info("%s", line)
    return report


def _run(held: leases.Held) -> CycleReport:
    began = time.monotonic()
    world = load()  # 1. rows -> snapshot
    meter.note_supply(world)  # 2. what nodes offer and queues are promised since their last edit
    meter.follow(world, at=meter.edited_at(world))
    verdict = decide_soundly(world.snapshot)  # 3. the engine; rather nothing than something wrong
    if verdict.plan is None:
        return _refuse(_row(held, world, verdict, began), world)
    applied = apply_plan(verdict.plan, world)  # 4. plan -> rows, guarded
    if applied.moved:
        meter.follow(load(world.now), at=world.now)  # 5. intervals open and close with it
    cycle = _row(held, world, verdict, began)
    record(cycle, world.snapshot, verdict.plan, applied)  # 6. what the next one must know
    return report_of(cycle, applied, verdict.quarantined)


def report_of(cycle: Cycle, applied: ApplyReport, quarantined: Iterable[str] = ()) -> CycleReport:
    """Return what a written cycle did."""
    return CycleReport(
        admitted=cycle.admitted,
        evicted=cycle.evicted,
        held=cycle.held,
        stale=cycle.stale,
        cycle_id=cycle.pk,
        lines=applied.said,
        quarantined=tuple(quarantined),
        resized=len(applied.resized),
        look_again_at=cycle.look_again_at,
    )


def _row(held: leases.Held, world: Loaded, verdict: Verdict, began: float) -> Cycle:
    cycle = row_of(held, world.now, world.last_change, began)
    faults = {**verdict.quarantined, **({"": verdict.faults} if verdict.faults else {})}
    cycle.faults = {tree: list(sentences) for tree, sentences in faults.items()}
    return cycle


def row_of(held: leases.Held, now: datetime, last_change: int, began: float) -> Cycle:
    """Return the row of a cycle that ``began`` on the monotonic clock, not written yet."""
    return Cycle(
        at=now,
        fence=held.fence,
        holder=held.holder,
        last_change=last_change,
        duration_ms=round((time.monotonic() - began) * 1000),
    )


def record(cycle: Cycle, snapshot: Snapshot | None, plan: Plan, written: ApplyReport) -> None:
    """Write the cycle's own row, with snapshot and plan where something was decided."""
    cycle.admitted, cycle.evicted = len(written.admitted), len(written.evicted)
    cycle.held, cycle.stale = written.held, len(written.stale)
    cycle.memory = codec.encode_memory(plan.memory)
    cycle.look_again_at = look_again_at(plan)
    cycle.work = dict(plan.work)
    moved = written.moved or written.stale
    if snapshot is not None and (moved or cycle.faults):
        cycle.snapshot = codec.encode_snapshot(snapshot)
        cycle.plan = codec.encode_plan(plan)
    cycle.save()
    for tree, faults in cycle.faults.items():
        logger.critical("cycle %s left out %s: %s", cycle.pk, tree, "; ".join(faults))


def _refuse(cycle: Cycle, world: Loaded) -> CycleReport:
    """Write none of a faulty plan, but the snapshot, from which the fault shows again."""
    cycle.memory = codec.encode_memory(world.snapshot.memory)
    cycle.snapshot = codec.encode_snapshot(world.snapshot)
    cycle.save()
    found = cycle.faults.items()
    faults = tuple(f"{tree}: {one}" if tree else one for tree, ones in found for one in ones)
    logger.critical("cycle %s decided nothing: %s", cycle.pk, "; ".join(faults))
    return CycleReport(cycle_id=cycle.pk, refused=faults)


def look_again_at(plan: Plan) -> datetime | None:
    """Return when time alone can first change a decision of the plan, as an instant."""
    at = plan.look_again_at
    return None if at is None else datetime.fromtimestamp(at, UTC)
