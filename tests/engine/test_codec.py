"""There and back again, byte for byte."""

import json
from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from scheduling.engine.codec import (
    decode_plan,
    decode_snapshot,
    encode_plan,
    encode_snapshot,
)
from scheduling.engine.cycle import decide
from scheduling.engine.snapshot import SliceLayer, TopologyRequest
from scheduling.engine.terms import TopologyMode
from tests.engine.builders import RACK, RECLAIM_ANY, pods, three_teams
from tests.engine.simulator import Simulator
from tests.engine.strategies import worlds

CODEC = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def text(encoded: object) -> str:
    return json.dumps(encoded)


@CODEC
@given(snapshot=worlds())
def test_round_trip(snapshot) -> None:
    sim = Simulator(snapshot)
    sim.step()
    for each in (snapshot, sim.snapshot):
        again = decode_snapshot(json.loads(text(encode_snapshot(each))))
        assert again == each
        assert text(encode_snapshot(again)) == text(encode_snapshot(each))
        plan = decide(each)
        assert decode_plan(json.loads(text(encode_plan(plan)))) == plan
        assert decide(again) == plan


def test_a_plan_with_claims_and_evictions() -> None:
    made = three_teams(RECLAIM_ANY).running("d", "cq-datos", gpus=4, on={"h100-node-01": 1})
    plan = decide(made.pending("p", "cq-plataforma").build())
    assert plan.memory.claims
    assert decode_plan(json.loads(text(encode_plan(plan)))) == plan


def test_slices_that_are_required_and_slices_that_are_preferred() -> None:
    layer = SliceLayer(RACK, 2)
    for request in (
        TopologyRequest(TopologyMode.PREFERRED, RACK, slices=(layer,)),
        TopologyRequest(TopologyMode.PREFERRED, RACK, preferred_slice=layer),
    ):
        asked = replace(pods(4), topology=request)
        snapshot = three_teams().pending("p", "cq-datos", asked).build()
        assert decode_snapshot(json.loads(text(encode_snapshot(snapshot)))) == snapshot


def test_equal_snapshots_give_equal_bytes() -> None:
    snapshot = three_teams().build()
    turned = replace(
        snapshot,
        now=int(snapshot.now),
        cluster_queues=dict(reversed(snapshot.cluster_queues.items())),
    )
    assert turned == snapshot
    assert text(encode_snapshot(turned)) == text(encode_snapshot(snapshot))
