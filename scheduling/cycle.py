"""One cycle against the database: load, decide, apply, meter. Nobody else writes a plan."""

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from gpuplatform.common import leases
from scheduling import meter
from scheduling.applier import ApplyReport, apply_plan, trim_placements
from scheduling.engine import codec
from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Plan
from scheduling.loader import Loaded, load
from scheduling.models import Cycle

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What a cycle did. ``ran`` false: another process was deciding, nothing was read or written.

    ``resized`` counts running gangs that got or lost surplus. ``lines`` says each decision that
    was written in words; ``refused`` the laws that the plan would have broken, for which nothing
    of it was written.
    """

    ran: bool = True
    admitted: int = 0
    evicted: int = 0
    held: int = 0
    stale: int = 0
    cycle_id: int | None = None
    lines: tuple[str, ...] = ()
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
    trim_placements(world)  # what shrank in place has left its nodes
    meter.note_supply(world)  # 2. what nodes offer and queues are promised since their last edit
    meter.follow(world, at=meter.edited_at(world))
    plan = decide(world.snapshot)  # 3. the engine
    broken = violations(world.snapshot, plan)  # 4. rather nothing than something wrong
    if broken:
        return _refuse(held, world, plan, broken, began)
    applied = apply_plan(plan, world)  # 5. plan -> rows, guarded
    if applied.admitted or applied.evicted or applied.resized:
        meter.follow(load(world.now), at=world.now)  # 6. intervals open and close with it
    cycle = _record(held, world, plan, began, applied)  # 7. what the next cycle must know
    return CycleReport(
        admitted=cycle.admitted,
        evicted=cycle.evicted,
        held=cycle.held,
        stale=cycle.stale,
        cycle_id=cycle.pk,
        lines=tuple(applied.lines),
        resized=len(applied.resized),
        look_again_at=cycle.look_again_at,
    )


def _record(
    held: leases.Held, world: Loaded, plan: Plan, began: float, applied: ApplyReport
) -> Cycle:
    """Write the cycle's own row, with snapshot and plan where something was decided."""
    cycle = _row(held, world, began)
    cycle.admitted, cycle.evicted = len(applied.admitted), len(applied.evicted)
    cycle.held, cycle.stale = applied.held, len(applied.stale)
    cycle.memory = codec.encode_memory(plan.memory)
    cycle.look_again_at = look_again_at(plan)
    cycle.work = dict(plan.work)
    if applied.admitted or applied.evicted or applied.resized or applied.stale:
        _keep_evidence(cycle, world, plan)
    cycle.save()
    return cycle


def _refuse(
    held: leases.Held, world: Loaded, plan: Plan, broken: tuple[str, ...], began: float
) -> CycleReport:
    """Write none of a plan that breaks a law, but all that is needed to find out why it does."""
    cycle = _row(held, world, began)
    cycle.memory = codec.encode_memory(world.snapshot.memory)
    cycle.work = {**plan.work, "violations": len(broken)}
    _keep_evidence(cycle, world, plan)
    cycle.save()
    logger.critical("cycle %s refused its plan: %s", cycle.pk, "; ".join(broken))
    return CycleReport(cycle_id=cycle.pk, refused=broken)


def _row(held: leases.Held, world: Loaded, began: float) -> Cycle:
    return Cycle(
        at=world.now,
        fence=held.fence,
        holder=held.holder,
        last_change=world.last_change,
        duration_ms=round((time.monotonic() - began) * 1000),
    )


def look_again_at(plan: Plan) -> datetime | None:
    """Return when time alone can first change a decision of the plan, as an instant."""
    at = plan.look_again_at
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _keep_evidence(cycle: Cycle, world: Loaded, plan: Plan) -> None:
    cycle.snapshot = codec.encode_snapshot(world.snapshot)
    cycle.plan = codec.encode_plan(plan)
