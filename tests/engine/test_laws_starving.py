"""At rest nobody waits for what is free, or for what its rights would give it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from scheduling.engine.snapshot import Preemption, Snapshot, Workload
from scheduling.engine.terms import (
    QueueingStrategy,
    ReclaimWithinCohort,
    WithinClusterQueue,
)
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

LAWS = settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.generate))
seeds = st.integers(0, 2**32 - 1)  # a smaller seed is no simpler world, so nothing is shrunk


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


def check_free(random: Random) -> None:
    world = at_rest(rich_world(random, Setting(stops=False)), random.randint(1, 3)).snapshot
    assert waits_for_what_is_free(world) == []
    assert world.memory.claims == ()  # nothing is kept for somebody who does not come


def check_lesser(random: Random) -> None:
    world = at_rest(
        rich_world(random, Setting(stops=False, strict=False, contended=True))
    ).snapshot
    assert waits_for_its_own_lesser(world) == []


def check_owner(random: Random) -> None:
    plain = Setting(
        stops=False, nodes=False, strict=False, runtimes=False, topology=False, contended=True
    )
    world = at_rest(generous(rich_world(random, plain))).snapshot
    assert owners_kept_out(world) == []


CHECKS = {
    "nobody waits for what is free": check_free,
    "nobody waits while lower priority stands in its nominal quota": check_lesser,
    "an owner gets back what others borrow": check_owner,
}


@LAWS
@given(seeds)
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_at_rest(check: Callable[[Random], None], seed: int) -> None:
    check(Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_at_rest_in_many_worlds(check: Callable[[Random], None]) -> None:
    for seed in range(2000):
        check(Random(seed))
