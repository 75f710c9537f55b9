"""What usually comes decides which node the policy ``fragmentation`` breaks."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import advance, decide
from scheduling.engine.machines import GPU
from scheduling.engine.plan import Admit
from scheduling.engine.snapshot import Recent, Snapshot
from scheduling.engine.state import State
from scheduling.engine.terms import PlacementPolicy
from tests.engine.builders import node, pods, world

FOUR, ONE = pods(1, 4), pods(1, 1)
FIVE_FREE, FOUR_FREE = "h100-node-01", "h100-node-02"


def site(policy: PlacementPolicy = PlacementPolicy.FRAGMENTATION) -> Snapshot:
    """Two nodes with 5 and 4 GPUs free; whoever takes one of the 4 leaves no room for four."""
    made = world().flavor(policy=policy).queue("cq-ia", 100).queue("cq-none", 0)
    made.node_list = [node(1, 8, unmanaged={GPU: 3}), node(2, 8, unmanaged={GPU: 4})]
    return made.pending("one", "cq-ia", ONE).build()


def waiting(snapshot: Snapshot, *shapes) -> Snapshot:
    """Let such pods wait in a queue without quota."""
    work = snapshot.workloads[0]
    more = (
        replace(work, key=f"w{i}", name=f"w{i}", queue="cq-none", pod_sets=(pod_set,))
        for i, pod_set in enumerate(shapes)
    )
    return replace(snapshot, workloads=(work, *more))


def placed(snapshot: Snapshot) -> str:
    (node_,) = decide(snapshot).decisions[0].assignments[0].nodes
    return node_


def test_the_shapes_of_the_last_days_keep_their_room():
    assert placed(replace(site(), shapes=(Recent(FOUR, 9),))) == FIVE_FREE


def test_where_nothing_is_known_of_them_those_who_wait_do():
    assert placed(waiting(site(), FOUR, FOUR, FOUR)) == FIVE_FREE


def test_with_nobody_else_expected_the_fullest_node_is_taken():
    assert placed(site()) == FOUR_FREE


def test_pods_that_no_node_here_would_take_are_not_expected():
    elsewhere = replace(FOUR, node_selector={"accelerator": "b200"})
    assert placed(waiting(site(), elsewhere, elsewhere)) == FOUR_FREE
    assert placed(replace(site(), shapes=(Recent(elsewhere, 9),))) == FOUR_FREE


@pytest.mark.parametrize(
    ("policy", "where"),
    [(PlacementPolicy.BINPACK, FOUR_FREE), (PlacementPolicy.SPREAD, FIVE_FREE)],
)
def test_other_policies_do_not_ask_who_comes(policy, where):
    for shape in (FOUR, pods(1, 5)):
        assert placed(replace(site(policy), shapes=(Recent(shape, 9),))) == where


def test_a_kept_state_expects_what_a_fresh_one_does():
    """Whoever comes to wait or leaves changes what is expected at the next cycle."""
    first = site()
    state = State(replace(first, workloads=()))
    advance(state, 1.0)
    for others in ((), (FOUR, FOUR), (), (FOUR,), (ONE, ONE, ONE)):
        now = waiting(first, *others)
        for work in now.workloads:
            state.put(work)
        fresh = decide(replace(state.snapshot(), now=2.0))
        kept = advance(state, 2.0)
        moves = [move for move in fresh.decisions if isinstance(move, Admit)]
        assert kept.moves == moves
        for key in list(state.workloads):
            state.drop(key)
