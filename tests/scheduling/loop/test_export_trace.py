"""What ran on the platform can be taken out as a trace, and replayed elsewhere."""

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from scheduling.cycle import run_cycle
from scheduling.reconciler import reconcile
from scheduling.replay.player import play
from scheduling.replay.reading import read_trace
from scheduling.replay.site import read_site
from tests.scheduling.loop.world import nodes, queue, work

pytestmark = pytest.mark.django_db
CLUSTER = {"nodes": 1, "gpus_per_node": 4, "nominal_gpus": {"cq-datos": 4}}


def test_what_ran_comes_out_as_a_trace_that_can_be_replayed(clock, tmp_path):
    nodes(1)
    queue("datos", 4)
    work("datos", "first", pods=2, gpus=2, expected_duration_s=600)
    work("datos", "second", gpus=4, priority=-1)
    work("datos", "never ran", gpus=4, priority=-2)
    run_cycle()
    reconcile()
    clock.shift(timedelta(minutes=15))
    reconcile()
    run_cycle()
    reconcile()
    clock.shift(timedelta(minutes=20))
    file = tmp_path / "past.csv"
    call_command("export_trace", str(file), "--days", "1")
    first, second = read_trace("past.csv", file.read_text(), 4).arrivals
    assert (first.runs_s, first.workload.duration_s, first.team) == (600, 600, "datos")
    assert [(p.count, p.requests) for p in first.workload.pod_sets] == [(2, {"nvidia.com/gpu": 2})]
    assert (second.runs_s, second.workload.priority) == (1200, -1)
    trace = read_trace("past.csv", file.read_text(), 4)
    tape = play(read_site("cluster.json", json.dumps(CLUSTER)), trace)
    assert sorted(round(stay.waited_s) for stay in tape.stays) == [0, 600]


def test_work_of_longer_ago_stays_out(clock, tmp_path):
    nodes(1)
    queue("datos", 4)
    work("datos", "old", expected_duration_s=60)
    run_cycle()
    reconcile()
    clock.shift(timedelta(days=3))
    reconcile()
    file = tmp_path / "past.csv"
    call_command("export_trace", str(file), "--days", "2")
    assert len(file.read_text().splitlines()) == 1
    with pytest.raises(CommandError, match="--days: must be between"):
        call_command("export_trace", str(file), "--days", "0")
