"""Laws that hold on every small world."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.engine.codec import encode_plan
from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from tests.engine.simulator import Simulator
from tests.engine.strategies import worlds

LAWS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@LAWS
@given(snapshot=worlds(), leave_after=st.integers(1, 3))
def test_every_plan_is_sound_and_the_world_comes_to_rest(snapshot, leave_after) -> None:
    """Work arrives in three waves, so that the later ones find borrowers to evict."""
    sim = Simulator(replace(snapshot, workloads=()), leave_after)
    third = len(snapshot.workloads) // 3 + 1
    for wave in (0, 1, 2):
        sim.submit(*snapshot.workloads[wave * third : (wave + 1) * third])
        sim.run()
    both_ways = {(p, v) for v, p in sim.evictions} & set(sim.evictions)
    assert both_ways == set(), "a pair evicts each other in turn"


@LAWS
@given(snapshot=worlds(), random=st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(snapshot, random) -> None:
    work, nodes = list(snapshot.workloads), list(snapshot.nodes)
    random.shuffle(work)
    random.shuffle(nodes)
    queues = dict(reversed(snapshot.cluster_queues.items()))
    turned = replace(snapshot, workloads=tuple(work), nodes=tuple(nodes), cluster_queues=queues)
    assert encode_plan(decide(turned)) == encode_plan(decide(snapshot))


@LAWS
@given(snapshot=worlds(), quota=st.integers(0, 3), lost=st.integers(0, 3))
def test_cuts_and_lost_nodes_never_make_an_unsound_plan(snapshot, quota, lost) -> None:
    sim = Simulator(snapshot)
    sim.run()
    nodes = tuple(replace(n, ready=i != lost) for i, n in enumerate(sim.snapshot.nodes))
    cohorts = {
        name: replace(c, quotas={fr: replace(q, nominal=quota) for fr, q in c.quotas.items()})
        for name, c in sim.snapshot.cohorts.items()
    }
    cut = replace(sim.snapshot, nodes=nodes, cohorts=cohorts)
    assert violations(cut, decide(cut)) == ()
