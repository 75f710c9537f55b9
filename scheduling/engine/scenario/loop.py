"""The loop: events, waking, a cycle, its consequences, until nothing moves (``FORMAT`` 3)."""

from dataclasses import dataclass, field
from typing import Any

from scheduling.engine.cycle import decide
from scheduling.engine.kueue.cycle import Board, HeadOutcome, decide_heads
from scheduling.engine.plan import Admit, Evict, Grow, Hold, Plan
from scheduling.engine.profile import Profile
from scheduling.engine.scenario import outcome
from scheduling.engine.scenario.script import Scenario
from scheduling.engine.scenario.world import Verdict, World
from scheduling.engine.snapshot import Assignment
from scheduling.engine.terms import PendingReason

IDLE_CYCLES = 4  # so many in a row without a change mean rest


@dataclass(slots=True)
class Record:
    """What one cycle did, in order."""

    admitted: list[tuple[str, tuple[Assignment, ...], bool]] = field(default_factory=list)
    preemptions: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)
    held: list[tuple[str, Verdict]] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    replaced: list[tuple[str, str]] = field(default_factory=list)  # (copy, original)
    mended: list[tuple[str, tuple[Assignment, ...]]] = field(default_factory=list)
    looked: bool = True  # whether anybody was considered at all

    @property
    def moved(self) -> bool:
        """Return whether anything was admitted or evicted, or stands elsewhere."""
        return bool(self.admitted or self.preemptions or self.mended)


def run(scenario: Scenario, profile: Profile) -> dict[str, Any]:
    """Return the outcome of the whole scenario, in the shape of ``expected``."""
    board = Board(profile)
    world, cycles, quiescent, idle = World(scenario), list[dict[str, Any]](), False, 0
    usages: dict[str, float] = {}
    for number in range(1, scenario.max_cycles + 1):
        world.age_consumption()
        world.finish_what_is_done()
        happened = [event for event in scenario.events if event.at_cycle == number]
        for event in happened:
            world.apply(event)
        before = world.memory.lobby.parked
        record = _everybody(world) if profile.drain else _heads(world, profile, board)
        if record.moved:
            cycles.append(outcome.cycle(number, record, world))
        _complete(world, record)
        if record.moved:
            usages = outcome.local_queue_usage(world)
        changed = record.moved or world.memory.lobby.parked != before
        idle = 0 if changed or happened else idle + 1
        still = not record.looked or idle >= IDLE_CYCLES
        if still and not _more_to_come(world, number):
            quiescent = True
            break
        world.now += scenario.cycle_seconds
    return outcome.whole(world, cycles, usages, quiescent=quiescent)


def _more_to_come(world: World, number: int) -> bool:
    """Return whether events are left, or time alone may change something until the last cycle."""
    scenario = world.scenario
    last = world.now + (scenario.max_cycles - number) * scenario.cycle_seconds
    return any(event.at_cycle > number for event in scenario.events) or any(
        world.now < instant <= last for instant in world.instants()
    )


def _heads(world: World, profile: Profile, board: Board) -> Record:
    """Let the heads be decided on. Nothing of the world changes but its memory."""
    decided, record = decide_heads(world.snapshot(), profile, board), Record()
    world.remember(decided.lobby)
    for entry in decided.entries:
        key = entry.workload.key
        record.order.append(key)
        if entry.outcome is HeadOutcome.ADMITTED:
            borrows = entry.nomination.level > 0
            record.admitted.append((key, entry.assignments, borrows))
            record.replaced += [(key, entry.replaces)] if entry.replaces else []
            continue
        reason = entry.reason
        if entry.outcome is HeadOutcome.PREEMPTING:
            victims = [(v.workload.key, v.right.value) for v in entry.victims]
            record.preemptions.append((key, sorted(victims)))
        record.held.append((key, (entry.outcome.value, reason.value if reason else None)))
    record.looked = bool(decided.entries)
    return record


def _everybody(world: World) -> Record:
    plan = decide(world.snapshot())
    world.memory = plan.memory
    record, victims = Record(), dict[str, list[tuple[str, str]]]()
    for decision in plan.decisions:
        match decision:
            case Admit(workload=key, assignments=assignments, borrows=borrows):
                record.admitted.append((key, assignments, bool(borrows)))
                record.replaced += [(key, decision.replaces)] if decision.replaces else []
            case Evict(workload=key, preemptor=preemptor, right=right):
                reason = right.value if right else decision.reason.value
                victims.setdefault(preemptor or "", []).append((key, reason))
            case Grow(workload=key, assignments=assignments):
                record.mended.append((key, assignments))
            case Hold():
                record.held.append((decision.workload, _verdict(decision)))
    record.preemptions = [(preemptor, sorted(found)) for preemptor, found in victims.items()]
    record.order = _order(plan)
    record.looked = bool(record.order)
    return record


def _order(plan: Plan) -> list[str]:
    return [d.workload for d in plan.decisions if not isinstance(d, Evict)]


def _verdict(hold: Hold) -> Verdict:
    waits = hold.reason is PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS
    return ("Preempting" if waits else "NoFit"), hold.reason.value


def _complete(world: World, record: Record) -> None:
    """Let the decisions take effect at once: quota held, victims back in their queues."""
    for key, verdict in record.held:
        world.verdicts[key] = verdict
    for key, assignments, _ in record.admitted:
        world.admit(key, assignments)
    for key, assignments in record.mended:
        world.mend(key, assignments)
    for copy, original in record.replaced:
        world.retire(copy, original)
    for _, victims in record.preemptions:
        for victim, _ in victims:
            world.evict(victim)
