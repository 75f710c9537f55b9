"""A state that lives long remembers no more than it could need, and decides what it always did."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise
from random import Random

import pytest

from scheduling.engine import renewal
from scheduling.engine.machines import CPU
from scheduling.engine.snapshot import Snapshot, Workload
from scheduling.engine.state import State
from scheduling.replay.deciders import Everybody
from tests.engine.yards import yard

STEPS, STAY = 120, 12  # cycles; work that stands or waits at a time
SPARE = 150


def remembered(state: State) -> int:
    return len(state.atlas.ground.holes) + len(state.shapes)


def arrivals(seed: int) -> Iterator[Workload]:
    """Yield work without end, none of which asks for what another one did."""
    for number in count():
        for work in yard(Random(seed + number)).workloads:
            key = f"{number}-{work.key}"
            asked = tuple(
                replace(p, requests={**p.requests, CPU: p.requests.get(CPU, 0) + number + 1})
                for p in work.pod_sets
            )
            yield replace(work, key=key, name=key, pod_sets=asked, replaces="")


def churned(site: Snapshot, seed: int) -> Iterator[tuple[list[object], int]]:
    """Yield what each cycle decides, and how much is remembered after it."""
    chance, stream = Random(seed), arrivals(seed)
    decider, here = Everybody(replace(site, workloads=())), list[str]()
    for step in range(STEPS):
        for work in (next(stream) for _ in range(3)):
            decider.put(replace(work, created_at=site.now + step))
            here.append(work.key)
        moves, _ = decider.decide(site.now + step + 1)
        yield list(moves), remembered(decider.state)
        while len(here) > STAY:
            decider.drop(here.pop(chance.randrange(len(here))))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_long_churn_leaves_no_memories_and_changes_no_decision(seed, monkeypatch):
    site = yard(Random(seed))
    endless = list(churned(site, seed))
    monkeypatch.setattr(renewal, "SPARE", SPARE)
    bounded = list(churned(site, seed))
    assert [moves for moves, _ in bounded] == [moves for moves, _ in endless]
    assert sum(map(len, (moves for moves, _ in bounded))) > STEPS // 2
    in_one_cycle = max(b - a for (_, a), (_, b) in pairwise(endless))
    most = SPARE + renewal.TIMES * (len(site.nodes) + STAY + 3) + 2 * in_one_cycle
    assert max(number for _, number in bounded) <= most < endless[-1][1]


def test_a_state_that_remembers_little_is_kept():
    state = State(yard(Random(1)))
    assert renewal.renewed(state) is state
