"""The bench counts honestly: nobody is lost, usage is conserved, goals are told as they are."""

import json

import pytest
from django.core.management import CommandError, call_command

from scheduling.bench import kueue_load
from scheduling.bench.kueue_load import play, read_load
from scheduling.bench.report import Goal, Report

ONE_CLASS = {"pods": 1, "runtime_ms": 1000, "creation_interval_ms": 500}
SMALL = {
    "name": "baseline",
    "cohorts": {"count": 1, "cluster_queues_each": 2},
    "cluster_queue": {
        "nominal_quota_milli": 4,
        "borrowing_limit_milli": 4,
        "within_cluster_queue": "LowerPriority",
        "reclaim_within_cohort": "Any",
    },
    "workload_classes": [
        {
            **ONE_CLASS,
            "class": "small",
            "creation_interval_ms": 100,
            "count_per_queue": 6,
            "priority": 1,
            "cpu_milli_per_pod": 1,
        },
        {
            **ONE_CLASS,
            "class": "large",
            "count_per_queue": 2,
            "priority": 9,
            "cpu_milli_per_pod": 4,
        },
    ],
    "derived": {"makespan_lower_bound_s": 3.5},
}


@pytest.mark.parametrize("fair", [False, True])
@pytest.mark.parametrize("all_pending", [False, True])
def test_everybody_finishes_and_each_run_is_counted_once(all_pending, fair):
    replay = play(read_load(SMALL, all_pending=all_pending, fair=fair))
    assert replay.finished == 16
    assert replay.admissions == 16 + replay.evictions
    assert sum(replay.evicted.values()) == replay.evictions


def test_urgent_work_that_arrives_evicts_and_its_victims_start_again():
    replay = play(read_load(SMALL))
    assert replay.evicted["small"] > 0
    assert replay.evicted["large"] == 0
    assert replay.waited_ms["large"] < replay.waited_ms["small"]


def test_without_the_right_to_evict_nobody_is_evicted():
    assert play(read_load(SMALL, preempt=False)).evictions == 0


def test_a_lost_workload_stops_the_bench(monkeypatch):
    load = read_load(SMALL)
    monkeypatch.setattr(kueue_load.State, "drop", lambda state, key: None)
    with pytest.raises(AssertionError, match=r"books say|never finished"):
        play(load)


def test_the_report_is_the_contract_of_benches():
    report = Report(
        "x", {"profile": "recommended"}, {"cycles": 3}, [2.0, 1.0, 4.0], [Goal("g", 2, 1)]
    )
    assert json.loads(report.as_json()) == {
        "name": "x",
        "env": {"profile": "recommended"},
        "work": {"cycles": 3},
        "time": {"best": 1.0, "median": 2.0},
        "goals": [{"id": "g", "value": 2, "limit": 1, "ok": False}],
    }
    assert "MISSED  g: 2 (at most 1)" in report.as_table()


def test_without_the_data_the_command_says_where_it_looks(settings, tmp_path):
    settings.SHARED_DATA = tmp_path
    with pytest.raises(CommandError, match=r"baseline\.json is not here"):
        call_command("bench", "kueue-load", "baseline")


@pytest.mark.shared
def test_tenfold_pending_work_costs_no_more_work_for_each_decision(shared):
    data = json.loads((shared / "data" / "kueue-perf" / "baseline.json").read_text())
    for one in data["workload_classes"]:
        one["count_per_queue"] //= 10
    few, many = (play(read_load(data, all_pending=True, times=times)) for times in (1, 10))
    ratio = kueue_load.units(many) / kueue_load.units(few)
    assert ratio <= 1.5
