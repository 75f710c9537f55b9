"""The bench of gangs counts honestly, and the same each time."""

import json

import pytest

from scheduling.bench import gang
from scheduling.engine.terms import PlacementPolicy


@pytest.mark.parametrize("policy", PlacementPolicy)
def test_every_decision_is_counted_and_two_runs_are_equal(policy):
    one, two = (gang.churn(64, policy, 60) for _ in range(2))
    assert one.decisions == 60
    assert one.placed == two.placed
    assert one.refused == one.placed.count(None)
    assert one.infeasible_s > 0


def test_no_node_ever_holds_more_than_it_has():
    site = gang.Yard(64, PlacementPolicy.BINPACK, 3)
    for _ in range(80):
        site.turn()
        for room in site.rooms:
            holes = [site.atlas.ground.holes[hole] for hole in room.holes]
            assert min(min(hole.amounts) for hole in holes) >= 0


def test_ten_times_the_nodes_cost_no_more_work_for_each_decision():
    few, many = (gang.churn(nodes, PlacementPolicy.BINPACK, 150) for nodes in (100, 1_000))
    assert many.units <= gang.GROWTH * few.units


def test_the_report_holds_the_figures_to_their_goals(monkeypatch):
    monkeypatch.setattr(gang, "ASKED", 5)
    monkeypatch.setattr(gang, "LARGE", 64)
    monkeypatch.setattr(gang, "BIG", 570)  # nodes, whole for 200 gangs
    monkeypatch.setattr(gang, "VICTIMS", 200)
    report = json.loads(gang.bench(PlacementPolicy.BINPACK, (50, 500), 20).as_json())
    goals = {goal["id"]: goal for goal in report["goals"]}
    assert goals["two-runs-differ"]["ok"]
    assert goals["ms-what-if-700-victims"]["value"] > 0
    assert "work-per-decision-at-ten-times-the-nodes" in goals
    assert report["env"]["policy"] == "binpack"
    assert report["work"]["decisions, 50 nodes"] == 20
