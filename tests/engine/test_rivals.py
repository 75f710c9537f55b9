"""A workload that lost to another queue by fairness is told so, with both figures."""

from dataclasses import replace

import pytest

from gpuplatform.common import reasons
from scheduling.engine.cycle import decide
from scheduling.engine.plan import Blocker, Hold
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.terms import BlockerCode, Fairness
from tests.engine.builders import World, pods, world

SHARE, HISTORY, NONE = Fairness.SHARE, Fairness.HISTORY, Fairness.NONE
RIVALRY = {BlockerCode.NOMINAL_FIRST, BlockerCode.LARGER_SHARE, BlockerCode.USED_MORE}
NODE = {"h100-node-01": 1}


def told(snapshot: Snapshot, key: str) -> list[Blocker]:
    (hold,) = [d for d in decide(snapshot).decisions if isinstance(d, Hold) and d.workload == key]
    return [blocker for blocker in hold.blockers if blocker.code in RIVALRY]


def pool(fairness: Fairness, gpus: int = 1) -> World:
    made = world().nodes(1, gpus).cohort("llm", nominal=gpus, fairness=fairness)
    return made.queue("cq-datos").queue("cq-ia")


def wanted(made: World) -> World:
    return made.pending("datos", "cq-datos").pending("ia", "cq-ia")


@pytest.mark.parametrize(("fairness", "codes"), [(NONE, []), (HISTORY, [BlockerCode.USED_MORE])])
def test_who_started_in_its_place_and_what_both_have_used(fairness, codes) -> None:
    snapshot = wanted(pool(fairness)).used(cq_datos=40.0, cq_ia=10.0).build()
    loser = "datos" if fairness is HISTORY else "ia"
    found = told(snapshot, loser)
    assert [blocker.code for blocker in found] == codes
    for blocker in found:
        assert blocker.where == "llm"
        assert blocker.facts == {
            "cause": "Started",  # it runs from now on: nobody goes first any more
            "first": "ia",
            "rival": "cq-ia",
            "own": "cq-datos",
            "their_hours": "10.1",  # what starts counts at once
            "their_gpus": 0,
            "our_hours": "40.0",
            "our_gpus": 0,
        }
        words = reasons.sentence(blocker.code, {**blocker.facts, "where": blocker.where})
        assert "In llm cq-ia went first: of late it had used 10.1 GPU-hours" in words


def test_whose_turn_is_next_while_everybody_waits() -> None:
    made = wanted(pool(HISTORY).running("old", "cq-ia", on=NODE)).used(cq_datos=40.0, cq_ia=10.0)
    snapshot = made.build()
    (blocker,) = told(snapshot, "datos")
    assert (blocker.facts["first"], blocker.facts.get("cause")) == ("ia", None)
    assert told(snapshot, "ia") == []


def test_a_larger_share_is_told_in_percent_of_what_there_is() -> None:
    made = pool(SHARE, 4).running("d", "cq-datos", gpus=2, on=NODE)
    made.running("i", "cq-ia", on=NODE)
    found = told(wanted(made).build(), "datos")
    assert [(b.code, b.facts["our_share"], b.facts["their_share"]) for b in found] == [
        (BlockerCode.LARGER_SHARE, "75.0", "50.0")
    ]


def test_who_asks_for_its_own_goes_first_whatever_the_shares() -> None:
    made = world().nodes(1, 2).cohort("llm", nominal=1, fairness=SHARE)
    made.queue("cq-datos").queue("cq-ia", 1, fair_weight=0.0).running("x", "cq-datos", on=NODE)
    (blocker,) = told(wanted(made).build(), "datos")
    assert blocker.code is BlockerCode.NOMINAL_FIRST
    assert "In llm cq-ia went first" in reasons.sentence(
        blocker.code, {**blocker.facts, "where": "llm"}
    )


def test_who_is_more_urgent_needs_no_explanation() -> None:
    made = pool(HISTORY).pending("datos", "cq-datos").pending("ia", "cq-ia", priority=1)
    assert told(made.used(cq_datos=40.0, cq_ia=10.0).build(), "datos") == []


def test_who_would_not_fit_anyway_is_not_told_of_whoever_started() -> None:
    made = pool(HISTORY, 4).pending("datos", "cq-datos", gpus=4).pending("ia", "cq-ia")
    made.running("x", "cq-ia", on=NODE)
    assert told(made.used(cq_datos=40.0, cq_ia=10.0).build(), "datos") == []


def test_what_can_never_start_is_nobodys_rival() -> None:
    made = pool(HISTORY).running("old", "cq-ia", on=NODE).pending("datos", "cq-datos")
    made.pending("huge", "cq-ia", gpus=64).used(cq_datos=40.0, cq_ia=10.0)
    assert told(made.build(), "datos") == []


def test_figures_are_those_of_the_parts_that_compete() -> None:
    made = world().nodes(1, 1).cohort("all", nominal=1, fairness=HISTORY)
    made.cohort("left", "all").cohort("right", "all")
    made.queue("l1", cohort="left").queue("l2", cohort="left").queue("r", cohort="right")
    made.pending("mine", "l1").pending("theirs", "r").used(l1=1.0, l2=9.0, r=5.0)
    (blocker,) = told(made.build(), "mine")
    assert (blocker.where, blocker.facts["own"], blocker.facts["our_hours"]) == (
        "all",
        "left",
        "10.0",
    )
    assert (blocker.facts["rival"], blocker.facts["their_hours"]) == ("right", "5.1")


def test_the_order_of_the_input_does_not_matter() -> None:
    snapshot = wanted(pool(HISTORY)).used(cq_datos=40.0, cq_ia=10.0).build()
    turned = replace(snapshot, workloads=snapshot.workloads[::-1])
    assert told(snapshot, "datos") == told(turned, "datos")


def test_a_gang_that_room_is_promised_to_is_not_told_that_another_goes_first() -> None:
    made = world().nodes(2).cohort("llm", nominal=8, fairness=HISTORY)
    made.queue("cq-datos").queue("cq-ia").used(cq_datos=40.0, cq_ia=10.0)
    made.running("old", "cq-datos", gpus=4, on=NODE, duration_s=1600.0)
    made.pending("gang", "cq-datos", pods(2, 4))
    made.memory = decide(made.build()).memory
    assert [one.workload for one in made.memory.reservations] == ["gang"]
    snapshot = made.pending("ia", "cq-ia", gpus=4).build()
    holds = {d.workload: d for d in decide(snapshot).decisions if isinstance(d, Hold)}
    assert BlockerCode.PROMISED in {blocker.code for blocker in holds["gang"].blockers}
    assert told(snapshot, "gang") == []
