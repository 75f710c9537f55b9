"""Historical fairness over many cycles: who used less starts first, nobody waits for ever."""

from collections import Counter
from dataclasses import replace

import pytest

from scheduling.engine.cycle import advance
from scheduling.engine.plan import Admit
from scheduling.engine.snapshot import Workload
from scheduling.engine.state import State
from scheduling.engine.terms import Fairness
from tests.engine.builders import World, pods, world
from tests.engine.simulator import Simulator

HALF_LIFE = 7 * 86400.0
HOUR = 3600.0


def one_gpu(**used: float) -> World:
    """Both teams share one GPU that Datos has held; Datos asks first."""
    made = world().nodes(1, gpus=1).cohort("llm", nominal=1, fairness=Fairness.HISTORY)
    made.queue("cq-datos").queue("cq-ia")
    made.pending("datos", "cq-datos").pending("ia", "cq-ia")
    return made.used(**used)


def test_ia_starts_before_the_older_job_of_datos_and_the_order_turns_with_time() -> None:
    made = one_gpu(cq_datos=40.0, cq_ia=10.0)
    made.running("first", "cq-ia", on={"h100-node-01": 1})
    sim = Simulator(made.build())
    sim.step()
    assert sim.admitted() == {"first"}
    sim.finish("first")
    sim.step()
    assert sim.admitted() == {"ia"}, "Datos has used more"

    sim.snapshot = replace(sim.snapshot, now=sim.snapshot.now + 5 * HALF_LIFE)
    sim.finish("ia")
    again = replace(made.workloads[1], key="ia-2", name="ia-2", created_at=50.0)
    sim.submit(again)
    sim.step()
    assert sim.admitted() == {"datos"}, "after five half-lives IA's own week weighs more"


def test_nobody_is_evicted_for_having_used_more() -> None:
    made = one_gpu(cq_datos=4000.0)
    made.workloads = made.workloads[1:]
    sim = Simulator(made.running("datos-old", "cq-datos", on={"h100-node-01": 1}).build())
    sim.run()
    assert sim.evictions == []


class Market:
    """Teams that submit endlessly to a pool; every job runs for one hour."""

    def __init__(self, made: World, step_s: float = HOUR / 4) -> None:
        self.state, self.step_s = State(made.build()), step_s
        self.started: dict[str, float] = {}
        self.asked: dict[str, float] = {}
        self.held: Counter[str] = Counter()  # GPU-hours by queue
        self._number = 0

    def submit(self, queue: str, gpus: int) -> str:
        self._number += 1
        key = f"{queue}-{self._number:06d}"
        now = self.state.now
        self.state.put(Workload(key, key, queue, 0, now, (pods(gpus=gpus),)))
        self.asked[key] = now
        return key

    def step(self) -> None:
        now = self.state.now + self.step_s
        for key, since in list(self.started.items()):
            if now - since >= HOUR:
                work = self.state.workloads[key]
                self.held[work.queue or ""] += work.pod_sets[0].requests["nvidia.com/gpu"]
                self.state.drop(key)
                del self.started[key]
        for move in advance(self.state, now).moves:
            assert isinstance(move, Admit)
            self.started[move.workload] = now

    def waiting(self, queue: str) -> int:
        return sum(w.queue == queue and not w.admission for w in self.state.workloads.values())


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_two_teams_that_ask_endlessly_are_served_by_their_weights(weight) -> None:
    """Big gangs against small ones, the greedy team first in every cycle."""
    made = world().nodes(2).cohort("llm", nominal=8, fairness=Fairness.HISTORY)
    market = Market(made.queue("cq-big", fair_weight=weight).queue("cq-small"))
    for _ in range(480):
        while market.waiting("cq-big") < 4:
            market.submit("cq-big", 4)
        while market.waiting("cq-small") < 12:
            market.submit("cq-small", 1)
        market.step()
    assert market.held["cq-big"] / market.held["cq-small"] == pytest.approx(weight, rel=0.15)


def test_a_team_with_rare_jobs_waits_no_longer_than_a_job_of_the_others_runs() -> None:
    made = world().nodes(1).cohort("llm", nominal=4, fairness=Fairness.HISTORY)
    market = Market(made.queue("cq-a").queue("cq-b").queue("cq-rare"))
    waits = []
    rare = ""
    for step in range(400):
        for team in ("cq-a", "cq-b"):
            while market.waiting(team) < 8:
                market.submit(team, 1)
        if step % 40 == 20:
            rare = market.submit("cq-rare", 1)
        market.step()
        if rare in market.started:
            waits.append(market.started[rare] - market.asked[rare])
            rare = ""
    assert len(waits) == 10
    assert max(waits) <= HOUR
    assert market.held["cq-a"] == pytest.approx(market.held["cq-b"], rel=0.05)


def test_a_week_of_rest_is_worth_half_of_what_was_used() -> None:
    """Datos used 100 hours a week ago, IA 60 just now: 50 against 60."""
    snapshot = one_gpu(cq_datos=100.0, cq_ia=60.0).build()
    history = dict(snapshot.memory.history)
    history["cq-datos"] = replace(history["cq-datos"], at=snapshot.now - HALF_LIFE)
    sim = Simulator(replace(snapshot, memory=replace(snapshot.memory, history=history)))
    sim.step()
    assert sim.admitted() == {"datos"}
