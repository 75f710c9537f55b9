"""At rest nobody waits for what is free, or for what its rights would give it."""

from collections import Counter
from dataclasses import replace
from random import Random

from scheduling.engine.snapshot import Preemption, Snapshot, Workload
from scheduling.engine.terms import (
    QueueingStrategy,
    ReclaimWithinCohort,
    WithinClusterQueue,
)
from tests.engine.laws import laws
from tests.engine.naive import (
    Tree,
    asked_under,
    could_start,
    heads_and_more,
    may_use,
    options,
    usage_of,
)
from tests.engine.rich import Setting, rich_world
from tests.engine.simulator import Simulator


def at_rest(snapshot: Snapshot, leave_after: int = 1) -> Simulator:
    """Let the work arrive in three waves, so that later ones find borrowers to evict."""
    sim = Simulator(replace(snapshot, workloads=()), leave_after)
    third = len(snapshot.workloads) // 3 + 1
    for wave in (0, 1, 2):
        sim.submit(*snapshot.workloads[wave * third : (wave + 1) * third])
        sim.run()
    return sim


def best_effort(snapshot: Snapshot, work: Workload) -> bool:
    queue = snapshot.cluster_queues[work.queue or ""]
    return queue.queueing_strategy is QueueingStrategy.BEST_EFFORT_FIFO


def waits_for_what_is_free(snapshot: Snapshot) -> list[str]:
    return [
        work.key
        for work in heads_and_more(snapshot)
        if best_effort(snapshot, work) and could_start(snapshot, work)
    ]


def waits_for_its_own_lesser(snapshot: Snapshot) -> list[str]:
    """Whoever could start within nominal quota if lower priority of its own queue left."""
    hunted = dict(snapshot.memory.evicted_by)
    found = []
    for work in heads_and_more(snapshot):
        queue = snapshot.cluster_queues[work.queue or ""]
        never = queue.preemption.within_cluster_queue is WithinClusterQueue.NEVER
        if never or queue.minimum_runtime.seconds or not best_effort(snapshot, work):
            continue
        lesser = [
            other.key
            for other in snapshot.workloads
            if other.queue == work.queue
            and other.admission is not None
            and other.priority < work.priority
            and other.preemptible
        ]
        modest = all(
            amount <= queue.quotas[fr].nominal
            for option in options(queue, work.pod_sets[0])
            for fr, amount in asked_under(work.pod_sets[0], option).items()
        )
        if lesser and modest and work.key not in hunted and could_start(snapshot, work, lesser):
            found.append(work.key)
    return found


def generous(snapshot: Snapshot) -> Snapshot:
    """The same world where everything that is borrowed may be taken back."""
    rights = Preemption(WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)
    queues = {
        name: replace(
            queue,
            preemption=rights,
            reclaimable=True,
            queueing_strategy=QueueingStrategy.BEST_EFFORT_FIFO,
        )
        for name, queue in snapshot.cluster_queues.items()
    }
    work = tuple(replace(w, preemptible=True) for w in snapshot.workloads)
    return replace(snapshot, cluster_queues=queues, workloads=work)


def owners_kept_out(snapshot: Snapshot) -> list[str]:
    """Who would stay within the nominal quota of its queue, and waits all the same.

    Whoever has been evicted may not strike back (``decisions.md`` 4.7): it is left out.
    """
    usage, hunted = usage_of(snapshot), dict(snapshot.memory.evicted_by)
    found = []
    for work in heads_and_more(snapshot):
        if work.key in hunted:
            continue
        queue = snapshot.cluster_queues[work.queue or ""]
        for option in options(queue, work.pod_sets[0]):
            if not may_use(snapshot, work.pod_sets[0], option.values()):
                continue
            asked = asked_under(work.pod_sets[0], option)
            used = usage.get(queue.name, Counter())
            if all(used[fr] + n <= queue.quotas[fr].nominal for fr, n in asked.items()):
                alone = Tree(snapshot, {queue.name: used})
                found += [work.key] * alone.fits(queue.name, asked)
    return found


def check_nobody_waits_for_what_is_free(random: Random) -> None:
    world = at_rest(rich_world(random, Setting(stops=False)), random.randint(1, 3)).snapshot
    assert waits_for_what_is_free(world) == []
    assert world.memory.claims == ()  # nothing is kept for somebody who does not come


def check_nobody_waits_while_lower_priority_stands_in_its_nominal_quota(random: Random) -> None:
    world = at_rest(
        rich_world(random, Setting(stops=False, strict=False, contended=True))
    ).snapshot
    assert waits_for_its_own_lesser(world) == []


def check_an_owner_gets_back_what_others_borrow(random: Random) -> None:
    plain = Setting(
        stops=False, nodes=False, strict=False, runtimes=False, topology=False, contended=True
    )
    world = at_rest(generous(rich_world(random, plain))).snapshot
    assert owners_kept_out(world) == []


test_law, test_law_in_many_worlds = laws(
    check_nobody_waits_for_what_is_free,
    check_nobody_waits_while_lower_priority_stands_in_its_nominal_quota,
    check_an_owner_gets_back_what_others_borrow,
    few=25,
    many=2000,
)
