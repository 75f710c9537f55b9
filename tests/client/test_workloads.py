"""gpuctl and work: submit, list, explain, deactivate, reactivate, cancel."""

import json
from datetime import timedelta
from typing import Any

import pytest
import yaml

from gpuplatform.common import clock
from scheduling.cycle import run_cycle
from scheduling.models import Workload
from scheduling.reconciler import reconcile
from tests.client.conftest import Run
from tests.scheduling.loop.world import nodes, queue, work

pytestmark = pytest.mark.django_db
OWN = """
name: {name}
namespace: ns-datos
queue: lq
pod_sets: [{{name: main, count: 1, requests: {{nvidia.com/gpu: {gpus}}}}}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: ns-datos
  labels: {{kueue.x-k8s.io/queue-name: lq}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}]
"""


@pytest.fixture(autouse=True)
def platform(cast: Any) -> None:
    nodes(1)
    queue("datos", 4)


def settle() -> None:
    run_cycle()
    reconcile()


def test_a_list_is_tab_separated_without_a_heading_where_a_program_reads(
    gpuctl: Run, cast: Any
) -> None:
    work("datos", "train")
    work("ia", "foreign", namespace="ns-ia")
    done = gpuctl(cast.lea, "list", "workloads")
    assert (done.code, done.err) == (0, "")
    assert [row[:5] for row in done.rows] == [["train", "datos", "lq", "pending", "1 GPU"]]


def test_all_pages_of_a_list_are_read(gpuctl: Run, cast: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("gpuplatform.common.paging.MOST", 2)
    monkeypatch.setattr("gpuplatform.common.paging.NewestFirst.max_page_size", 2)
    monkeypatch.setattr("gpuplatform.client.server.PAGE", 2)
    for number in range(5):
        work("datos", f"train-{number}")
    done = gpuctl(cast.lea, "list", "workloads", "-o", "name")
    assert done.out.split() == [f"train-{number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    ("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)], ids=["json", "yaml"]
)
def test_json_and_yaml_are_what_rest_answers(gpuctl: Run, cast: Any, form: str, read: Any) -> None:
    row = work("datos", "train")
    (shown,) = read(gpuctl(cast.lea, "list", "workloads", "-o", form).out)
    assert (shown["uid"], shown["status"], shown["version"]) == (str(row.pk), "pending", 1)


def test_csv_has_a_heading_and_no_formula(gpuctl: Run, cast: Any) -> None:
    work("datos", "train", kind="=1+1")
    head, line = gpuctl(cast.lea, "list", "workloads", "-o", "csv").out.splitlines()
    assert head.startswith("name,team,queue,state,size,pos,wait,reason,age")
    assert "'=1+1" in line


def test_filters_go_to_the_server_and_a_wrong_one_is_an_error(gpuctl: Run, cast: Any) -> None:
    work("datos", "train")
    assert gpuctl(cast.lea, "list", "workloads", "--state", "running").out == ""
    done = gpuctl(cast.lea, "list", "workloads", "--state", "wrong")
    assert done.code == 1
    assert "known are pending" in done.err


def test_explain_says_why_and_what_would_help(gpuctl: Run, cast: Any) -> None:
    work("datos", "first", gpus=4)
    work("datos", "train", gpus=2)
    settle()
    done = gpuctl(cast.lea, "explain", "ns-datos/train")
    assert done.code == 0
    assert "ns-datos/train: pending, 2 GPU" in done.out
    assert "1. QUOTA_NOMINAL" in done.out or "1. COHORT_EXHAUSTED" in done.out
    assert "main" not in gpuctl(cast.lea, "explain", "first").out
    assert "worker: 1 on h100-node-01" in gpuctl(cast.lea, "explain", "first").out


@pytest.mark.parametrize("text", [OWN, JOB], ids=["own", "manifest"])
def test_submit_takes_standard_input_and_names_what_it_made(
    gpuctl: Run, cast: Any, text: str
) -> None:
    done = gpuctl(cast.lea, "submit", "-f", "-", text=text.format(name="new", gpus=1))
    assert done.code == 0
    row = Workload.objects.get()
    assert done.rows == [[done.rows[0][0], "ns-datos/new", "accepted", "created", str(row.pk)]]


@pytest.mark.parametrize("text", [OWN, JOB], ids=["own", "manifest"])
def test_a_dry_run_keeps_nothing(gpuctl: Run, cast: Any, text: str) -> None:
    done = gpuctl(cast.lea, "submit", "-f", "-", "--dry-run", text=text.format(name="new", gpus=1))
    assert (done.code, Workload.objects.count()) == (0, 0)
    assert done.rows[0][1:] == ["ns-datos/new", "accepted", "dry run: would be created", ""]
    assert "Would be admitted now" in done.err


def test_explain_says_why_work_is_inactive_and_how_it_comes_back(gpuctl: Run, cast: Any) -> None:
    work("datos", "train", gpus=2)
    assert gpuctl(cast.lea, "deactivate", "train", "--reason", "out of the way").code == 0
    told = gpuctl(cast.lea, "explain", "train").out
    assert "UserRequest: By request." in told
    assert "out of the way" in told
    assert "gpuctl reactivate ns-datos/train" in told


def test_ending_work_twice_names_no_field(gpuctl: Run, cast: Any) -> None:
    work("datos", "train", gpus=2)
    assert gpuctl(cast.lea, "cancel", "train").code == 0
    settle()
    uid = str(Workload.objects.get().pk)
    done = gpuctl(cast.lea, "cancel", uid)
    assert done.code == 4
    assert "already_finished: " in done.err
    assert "/status" not in done.err


@pytest.mark.parametrize("text", [OWN, JOB], ids=["own", "manifest"])
def test_what_breaks_a_rule_ends_with_5_and_says_the_rule(
    gpuctl: Run, cast: Any, text: str
) -> None:
    done = gpuctl(cast.lea, "submit", "-f", "-", text=text.format(name="new", gpus=99))
    assert (done.code, done.out) == (5, "")
    assert "NEVER_FITS" in done.err


def test_some_rejected_and_some_not_ends_with_5_and_shows_both(gpuctl: Run, cast: Any) -> None:
    text = JOB.format(name="good", gpus=1) + "---" + JOB.format(name="huge", gpus=99)
    done = gpuctl(cast.lea, "submit", "-f", "-", text=text)
    assert done.code == 5
    assert [row[1:3] for row in done.rows] == [
        ["ns-datos/good", "accepted"],
        ["ns-datos/huge", "rejected"],
    ]
    assert Workload.objects.get().name == "good"


def test_a_wait_ends_when_it_runs_or_with_7_when_the_time_is_over(
    gpuctl: Run, cast: Any, monkeypatch: Any
) -> None:
    full = work("datos", "full", gpus=4)
    settle()
    wait = ("submit", "-f", "-", "--wait", "--timeout", "0")
    done = gpuctl(cast.lea, *wait, text=OWN.format(name="new", gpus=1))
    assert done.code == 7
    assert "ns-datos/new" in done.err
    full.delete()
    monkeypatch.setattr("gpuplatform.client.submitting.time.sleep", lambda _s: settle())
    wait = ("submit", "-f", "-", "--wait", "--timeout", "60")
    assert gpuctl(cast.lea, *wait, text=OWN.format(name="newer", gpus=1)).code == 0
    assert Workload.objects.get(name="newer").status == "running"


def test_deactivate_and_reactivate_take_work_out_of_the_queue_and_back(
    gpuctl: Run, cast: Any
) -> None:
    row = work("datos", "train")
    assert gpuctl(cast.lea, "deactivate", "train", "--reason", "Maintenance").code == 0
    row.refresh_from_db()
    assert row.status == "inactive"
    assert gpuctl(cast.lea, "reactivate", "train").code == 0
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_priority_can_be_changed(gpuctl: Run, cast: Any) -> None:
    row = work("datos", "train", priority_class="low")
    assert gpuctl(cast.lea, "prioritize", "train", "--to", "-7").code == 0
    row.refresh_from_db()
    assert (row.priority, row.priority_class, row.version) == (-7, "", 2)
    assert row.events.get(kind="priority_changed").facts == {"before": 0, "priority": -7}


def test_a_member_goes_no_higher_than_the_limit_and_an_admin_as_high_as_needed(
    gpuctl: Run, cast: Any
) -> None:
    row = work("datos", "train")
    assert gpuctl(cast.lea, "prioritize", "train", "--to", "100").code == 0
    refused = gpuctl(cast.lea, "prioritize", "train", "--to", "101")
    assert refused.code != 0
    assert "PRIORITY_ABOVE_LIMIT" in refused.out + refused.err
    row.refresh_from_db()
    assert row.priority == 100
    assert gpuctl(cast.ada, "prioritize", "ns-datos/train", "--to", "9999999").code == 0


def test_several_are_cancelled_only_where_somebody_says_yes(gpuctl: Run, cast: Any) -> None:
    work("datos", "one")
    work("datos", "two")
    assert gpuctl(cast.lea, "cancel", "one", "two").code == 2
    assert not Workload.objects.filter(status="finished").exists()
    assert gpuctl(cast.lea, "cancel", "one", "two", "--yes", "--reason", "Wrong data").code == 0
    assert set(Workload.objects.values_list("outcome", flat=True)) == {"cancelled"}


def test_one_that_cannot_be_cancelled_keeps_no_other_from_it(gpuctl: Run, cast: Any) -> None:
    ended = work("datos", "ended", status="finished", outcome="succeeded")
    work("datos", "two")
    done = gpuctl(cast.lea, "cancel", str(ended.pk), "two", "--yes")
    assert (done.code, Workload.objects.get(name="two").outcome) == (4, "cancelled")
    assert "ns-datos/ended: already_finished" in done.err
    assert "ns-datos/two cancelled" in done.err


def test_a_name_that_may_be_several_is_asked_back(gpuctl: Run, cast: Any) -> None:
    work("datos", "train")
    second = work("datos", "train", kind="Job")
    done = gpuctl(cast.lea, "explain", "train")
    assert done.code == 2
    assert str(second.pk) in done.err


def test_foreign_work_is_not_there(gpuctl: Run, cast: Any) -> None:
    row = work("datos", "train")
    for name in ("train", "ns-datos/train", str(row.pk)):
        assert gpuctl(cast.ian, "explain", name).code == 3


def test_waiting_time_counts_from_the_last_eviction_as_on_the_page(gpuctl: Run, cast: Any) -> None:
    """Submitted five hours ago, evicted 53 minutes ago: it has waited 53 minutes."""
    row = work("datos", "evicted", gpus=99, created_at=clock.now() - timedelta(hours=5))
    row.waiting_since, row.position = clock.now() - timedelta(minutes=53, seconds=5), 1
    row.save()
    listed = gpuctl(cast.lea, "list", "workloads", "-o", "wide")
    assert "53m" in listed.out, listed.out
    assert "waiting for 53m" in gpuctl(cast.lea, "explain", "evicted").out
