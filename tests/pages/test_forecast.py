"""A dry run says what the next cycle would do: on the page and over REST, in the same words."""

from dataclasses import MISSING, fields, replace

import pytest
from django.urls import reverse

from gpuplatform.common.models import Change
from queues.models import ClusterQueue
from scheduling.loader import load_snapshot
from scheduling.models import Workload
from scheduling.rules import candidate
from scheduling.selectors import forecast
from scheduling.services import load_world, submit_workload
from scheduling.specs import PodSetSpec, SubgroupSpec, TopologySpec, WorkloadSpec
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {{name: maybe, namespace: ns-{team}, labels: {{kueue.x-k8s.io/queue-name: lq}}}}
spec:
  parallelism: {pods}
  completions: {pods}
  template:
    spec:
      containers:
        - name: main
          resources: {{requests: {{nvidia.com/gpu: {gpus}}}, limits: {{nvidia.com/gpu: {gpus}}}}}
"""


def told_by_page(browser, team, pods, gpus):
    text = JOB.format(team=team, pods=pods, gpus=gpus)
    return browser.post(reverse("submit"), {"text": text, "dry_run": "1"}).text


def told_by_rest(browser, team, pods, gpus):
    body = {
        "namespace": f"ns-{team}",
        "name": "maybe",
        "queue": "lq",
        "pod_sets": [{"name": "main", "count": pods, "requests": {world.GPU: str(gpus)}}],
    }
    answer = browser.post(
        reverse("api-workloads") + "?dry_run=All", body, content_type="application/json"
    )
    assert answer.status_code == 200, answer.text
    return answer.json()["forecast"]["detail"]


@pytest.mark.parametrize("ask", [told_by_page, told_by_rest])
@pytest.mark.parametrize(
    ("who", "size", "words"),
    [
        ("ian", (1, 2), "Would be admitted now on h100-sxm."),
        ("lea", (1, 2), "Would wait: "),
        ("ian", (1, 4), "Would evict 1 workload and start once they have stopped."),
    ],
)
def test_a_dry_run_says_what_the_next_cycle_would_do(  # noqa: PLR0917 - a table
    platform, cast, signed_in, ask, who, size, words
):
    ClusterQueue.objects.update(reclaim_within_cohort="Any")
    team = {"ian": "ia", "lea": "datos"}[who]
    before = (Workload.objects.count(), Change.objects.count())
    told = ask(signed_in(getattr(cast, who)), team, *size)
    assert words in told
    assert (Workload.objects.count(), Change.objects.count()) == before


@pytest.mark.parametrize("ask", [told_by_page, told_by_rest])
def test_a_dry_run_says_how_much_it_would_borrow(platform, lea, signed_in, ask):
    platform.later.delete()
    ClusterQueue.objects.get(name="cq-datos").quotas.update(borrowing_limit=None)
    told = ask(signed_in(lea), "datos", 1, 2)
    assert "Would be admitted now on h100-sxm, borrowing 2 GPUs." in told


def test_a_dry_run_names_no_foreign_queue(platform, lea, signed_in):
    ClusterQueue.objects.get(name="cq-datos").quotas.update(borrowing_limit=None)
    page = told_by_page(signed_in(lea), "datos", 2, 4)
    assert "would be created" in page
    assert "cq-ia" not in page


def test_where_too_much_waits_only_a_cycle_can_tell(platform, lea, signed_in, monkeypatch):
    monkeypatch.setattr(forecast, "MOST_WAITING", 0)
    assert "only a cycle can tell" in told_by_page(signed_in(lea), "datos", 1, 1)


# ---- the candidate is what the row would be ----------------------------------------------------
SET_BY_LIFE = {  # no new workload has them
    *("admission", "releasing", "last_checkpoint_at", "reclaimable", "replaces", "part_of"),
    *("not_before", "version", "key", "created_at"),
}
EVERYTHING = WorkloadSpec(
    "ns-ia",
    "all",
    (
        PodSetSpec(
            "main",
            4,
            {world.GPU: 1},
            min_count=2,
            node_selector={"accelerator": "h100-sxm"},
            tolerations=({"key": "gpu", "operator": "Exists"},),
            affinity=(({"key": "accelerator", "operator": "Exists", "values": []},),),
            topology=TopologySpec("unconstrained"),
            subgroup=SubgroupSpec(2, 1),
            device_locality="prefer-island",
            device_memory_mib=1000,
        ),
    ),
    queue="lq",
    priority=7,
    ceiling_queue="cq-ia",
    min_member=2,
    role_minima={"main": 1},
    preemptible=False,
    stateless=True,
    expected_duration_s=60,
    checkpoint_interval_s=30,
    on_node_loss="requeue",
    gates=("somebody",),
)


@pytest.mark.parametrize(
    "spec",
    [
        EVERYTHING,
        replace(EVERYTHING, expected_duration_s=None, max_execution_time_s=90),
        replace(EVERYTHING, min_member=None, gates=(), queue=""),
        replace(EVERYTHING, gates=(), namespace="ns-datos", queue="gone"),
    ],
)
def test_a_forecast_judges_all_that_the_row_would_say(platform, monkeypatch, settings, spec):
    settings.ACCEPT_IMPOSSIBLE_WORKLOADS = True
    guessed = candidate(spec, load_world())
    row = submit_workload(spec, actor=None).workload
    kept = next(work for work in load_snapshot().workloads if work.key == str(row.uid))
    compared = {field.name for field in fields(kept)} - SET_BY_LIFE
    if spec.queue == "gone":  # a queue that is not there is named by the row only
        compared -= {"queue"}
    assert {n: getattr(guessed, n) for n in compared} == {n: getattr(kept, n) for n in compared}


def test_nothing_that_a_spec_can_say_is_left_at_its_default_in_this_comparison(platform):
    said = candidate(EVERYTHING, load_world())
    unset = {
        field.name
        for part in (said, said.pod_sets[0])
        for field in fields(part)
        if field.default is not MISSING and getattr(part, field.name) == field.default
    }
    # A gang with a minimum has no partial admission; the others are set by rules of the site,
    # and by growth.
    assert unset - SET_BY_LIFE <= {"min_count", "charges", "flavors", "role_minimum", "beside"}


def test_work_that_is_sent_in_kept_back_is_not_told_that_it_would_start(platform):
    spec = replace(EVERYTHING, active=False)
    told = forecast.forecast_spec(spec, load_world(), None, None)
    assert "It is kept back until it is reactivated." in told.as_json()["detail"]


# ---- where to begin ----------------------------------------------------------------------------
def test_the_submit_page_lists_own_queues_and_an_example_that_can_be_submitted(
    platform, lea, signed_in
):
    browser = signed_in(lea)
    page = browser.get(reverse("submit"))
    assert [(p.namespace, p.name) for p in page.context["places"]] == [("ns-datos", "lq")]
    assert "ns-ia" not in page.text
    sent = {"text": page.context["example"], "submit": "1"}
    answer = browser.post(reverse("submit"), sent)
    assert [d.code for r in answer.context["report"].results for d in r.diagnostics] == []
    assert "Follow ns-datos/my-training" in answer.text


def test_an_empty_chart_draws_no_axis(platform, ada, signed_in):
    page = signed_in(ada).get(reverse("queue", args=["cq-ia"]))
    drawn = "data-chart=" in page.text
    assert drawn == bool(page.context["use_rows"])


@pytest.mark.parametrize("name", ["status", "state"])
def test_rest_filters_by_status_under_both_names(platform, ada, signed_in, name):
    browser, path = signed_in(ada), reverse("api-workloads")
    found = browser.get(f"{path}?{name}=pending").json()["results"]
    assert [row["name"] for row in found] == ["later"]
    assert browser.get(f"{path}?{name}=nonsense").status_code == 400


def test_an_unknown_parameter_is_answered_with_the_known_ones(platform, ada, signed_in):
    answer = signed_in(ada).get(reverse("api-workloads") + "?phase=pending")
    assert answer.status_code == 400
    assert "known are" in answer.text
    assert "status" in answer.text
