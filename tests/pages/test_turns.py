"""Whose turn it is, shown where people look: the cohort, the queue, the workload."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from gpuplatform.common.models import AuditEntry
from queues.models import ClusterQueue, Cohort
from queues.services import save_cohort
from queues.specs import CohortSpec
from scheduling.cycle import run_cycle
from scheduling.models import Cycle, Workload
from scheduling.scaling import change_workload
from scheduling.specs import PodSetChange, WorkloadChange
from tests.pages.conftest import decide
from tests.pages.test_editors import posted
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db


def words(response):
    return " ".join(re.sub(r"<[^>]+>", " ", response.text).split())


@pytest.fixture
def fair(platform):
    """Both teams wait; Datos has held 12 GPUs for an hour, IA two."""
    Cohort.objects.filter(name="llm").update(fairness="history")
    world.work("ia", "large", pods=3, gpus=4)
    past = timezone.now() - timedelta(hours=1)
    for row in (platform.train, platform.secret):
        row.usage.update(started_at=past)
    Cycle.objects.all().delete()
    decide()
    return platform


def test_the_cohort_says_who_goes_next_and_why(fair, ada, signed_in):
    page = signed_in(ada).get(reverse("cohort", args=["llm"]))
    said = words(page)
    how = "all who wait would borrow, and it has used least for what it is promised"
    assert f"cq-ia stands first: {how}." in said
    children = page.context["page"].turns.children
    assert [(c.name, c.turn, c.waiting, c.borrows) for c in children] == [
        ("cq-ia", 1, 1, False),
        ("cq-datos", 2, 1, True),
    ]
    assert [round(c.hours) for c in children] == [2, 12]
    assert "history: least decayed GPU-hours first" in said


def test_a_team_sees_its_own_turn_and_nobody_elses(fair, lea, signed_in):
    browser = signed_in(lea)
    cohort = words(browser.get(reverse("cohort", args=["llm"])))
    assert "Another team stands first." in cohort
    assert "cq-ia" not in cohort.replace("now from cq-ia", "")  # who lends is told
    queue = words(browser.get(reverse("queue", args=["cq-datos"])))
    assert "Turn in the cohort 2 of 2 12.0 GPU-hours of late, weight 1" in queue
    assert "cq-ia" not in queue.replace("from cq-ia", "")


def test_without_fairness_nothing_is_said_about_turns(platform, ada, signed_in):
    browser = signed_in(ada)
    assert "Whose turn it is" not in browser.get(reverse("cohort", args=["llm"])).text
    assert "Turn in the cohort" not in browser.get(reverse("queue", args=["cq-datos"])).text


def test_safety_and_order_stand_on_the_page_of_the_queue(platform, ada, signed_in):
    ClusterQueue.objects.filter(name="cq-datos").update(
        minimum_runtime_s=5_400, yields_to_own=True, admission_order="usage", priority_first=True
    )
    said = words(signed_in(ada).get(reverse("queue", args=["cq-datos"])))
    assert "Safe from eviction for 1 h 30 min yields to its own higher priority" in said
    assert "Order inside the queue the local queue that used least goes first" in said


def test_a_queue_that_left_its_cohort_with_a_loan_says_that_it_owes_nobody(
    platform, ada, signed_in
):
    ClusterQueue.objects.filter(name="cq-datos").update(cohort=None)
    page = signed_in(ada).get("/queues/cq-datos/").text
    assert "cq-datos holds 12 GPUs: 4 h100-sxm above its own 8" in page
    assert "neither borrows nor lends" in page
    assert "4 borrowed" not in page
    assert "no limit</td>" not in page


@pytest.mark.parametrize(("minimum_s", "says"), [(0, "yes"), (5_400, "from "), (60, "yes")])
def test_running_work_says_from_when_it_may_be_evicted(db, ada, signed_in, minimum_s, says):
    world.nodes(1, gpus=2)
    world.queue("datos", 2, minimum_runtime_s=minimum_s)
    row = world.work("datos", "held", gpus=2)
    run_cycle("test")
    Workload.objects.filter(pk=row.pk).update(admitted_at=timezone.now() - timedelta(minutes=5))
    page = signed_in(ada).get(reverse("queue", args=["cq-datos"])).text
    cell = page.partition("held</a>")[2].partition("</tr>")[0].rpartition('class="extra">')[2]
    assert cell.strip().startswith(says)


@pytest.fixture
def contest(db):
    """Two GPUs are free, each team waits for both; Datos asked first and has used 8 hours."""
    world.nodes(1, gpus=2)
    Cohort.objects.create(name="llm")
    for name in ("datos", "ia"):
        world.queue(name, 2, cohort="llm")
    past = world.work("datos", "past", gpus=2)
    run_cycle("test")
    now = timezone.now()
    past.usage.update(started_at=now - timedelta(hours=5), ended_at=now - timedelta(hours=1))
    past.admissions.update(released_at=now)
    Workload.objects.update(status="finished", outcome="succeeded")
    Cycle.objects.all().delete()
    for name in ("datos", "ia"):
        world.work(name, f"{name}-next", gpus=2)


def effects(answer):
    """Return who starts or waits because of the edit."""
    found = (finding for finding in answer.context["findings"] if "names" in finding.numbers)
    return {finding.code: finding.numbers["names"] for finding in found}


def test_checking_a_cohort_says_what_its_fairness_would_change(contest, ada, signed_in):
    browser, path = signed_in(ada), reverse("cohort-edit", args=["llm"])
    answer = browser.post(path, posted(browser.get(path), fairness="history", check="1"))
    assert answer.status_code == 200
    told = effects(answer)
    assert told == {"EDIT_STARTS": "ns-ia/ia-next", "EDIT_KEEPS_WAITING": "ns-datos/datos-next"}
    assert Cohort.objects.get(name="llm").fairness == "none"


def test_checking_a_weight_says_what_it_would_change(contest, ada, signed_in):
    Cohort.objects.update(fairness="history")
    past = Workload.objects.get(name="past").usage.get()
    past.pk, past.cluster_queue, past.amount = None, "cq-ia", 1
    past.save(force_insert=True)
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-datos"])
    answer = browser.post(path, posted(browser.get(path), fair_weight="4", check="1"))
    told = effects(answer)
    assert told == {"EDIT_STARTS": "ns-datos/datos-next", "EDIT_KEEPS_WAITING": "ns-ia/ia-next"}


def test_an_eviction_says_how_much_work_it_cost(platform, ada, signed_in):
    platform.train.admissions.update(admitted_at=timezone.now() - timedelta(hours=2))
    ClusterQueue.objects.filter(name="cq-datos").update(stop_policy="HoldAndDrain")
    run_cycle("test")
    said = words(signed_in(ada).get(reverse("workload", args=[platform.train.uid])))
    assert "24.0 GPU-hours of work since its last checkpoint, or its start, lost." in said


def test_a_running_workload_says_what_it_asks_to_become(platform, ada, signed_in):
    Workload.objects.filter(pk=platform.secret.pk).update(elastic=True)
    platform.ia.quotas.update(nominal=40)
    change = WorkloadChange((PodSetChange("worker", 4),))
    change_workload(platform.secret.uid, change, actor=None)
    run_cycle("test")
    browser = signed_in(ada)
    said = words(browser.get(reverse("workload", args=[platform.secret.uid])))
    assert "It runs with 1 pods and asks for 4" in said
    assert "GANG_NO_FIT" in said
    assert "Asks for more pods From 1 to 4 pods." in said
    waiting = words(browser.get(reverse("queue", args=["cq-ia"])))
    assert "Nobody waits here." in waiting


def test_who_loses_a_turn_is_told_to_whom_and_teams_no_foreign_names(
    contest, ada, lea, signed_in, token_of
):
    Cohort.objects.update(fairness="history")
    run_cycle("test")
    waits = Workload.objects.get(name="datos-next")
    assert waits.status == "pending"
    admin = words(signed_in(ada).get(reverse("workload", args=[waits.uid])))
    assert (
        "In llm cq-ia went first: of late it had used 0.2 GPU-hours with 2 GPUs promised" in admin
    )
    assert "cq-datos had used 7.9 with 2 GPUs promised" in admin
    headers = {"Authorization": token_of(lea)}
    answer = Client().get(f"/api/v1/workloads/{waits.uid}/", headers=headers).json()
    told = next(b for b in answer["blockers"] if b["code"] == "USED_MORE")
    assert "In llm another team went first" in told["sentence"]
    first = Workload.objects.get(name="ia-next")
    assert "cq-ia" not in str(answer["blockers"])
    assert str(first.uid) not in str(answer["blockers"])


# ---- the request counts, not what is held alone -----------------------------------------------
def test_who_stands_first_is_judged_with_what_it_asks_for(platform, ada, signed_in):
    """IA holds less above its own than Datos, but what it asks for would make it borrow more."""
    Cohort.objects.filter(name="llm").update(fairness="share")
    world.work("ia", "large", pods=4, gpus=4)  # 2 + 16 of 8: ten above
    children = signed_in(ada).get(reverse("cohort", args=["llm"])).context["page"].turns.children
    assert [(c.name, c.turn, c.would_borrow) for c in children] == [
        ("cq-datos", 1, True),
        ("cq-ia", 2, True),
    ]
    said = words(signed_in(ada).get(reverse("cohort", args=["llm"])))
    assert "all who wait would borrow, and with its request it would borrow least" in said
    assert "Borrows, by weight" in said


def test_work_that_can_never_run_stands_first_nowhere(platform, ada, signed_in):
    Cohort.objects.filter(name="llm").update(fairness="share")
    world.work("ia", "never", pods=40, gpus=4)
    children = signed_in(ada).get(reverse("cohort", args=["llm"])).context["page"].turns.children
    assert [(c.name, c.turn) for c in children] == [("cq-datos", 1), ("cq-ia", None)]


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/cohorts/llm/", "q"),
        ("/cohorts/llm/edit/", "q"),
        ("/queues/cq-ia/", "q"),
        ("/flavors/", "n"),
        ("/flavors/h100-sxm/", "n"),
        ("/topologies/new/", "n"),
        ("/", "o"),
    ],
)
def test_the_rail_says_where_one_is(platform, ada, signed_in, path, key):
    text = signed_in(ada).get(path).text
    assert re.findall(r'data-go="(\w)" aria-current="page"', text) == [key]


def test_a_right_that_a_sharing_tree_does_not_look_at_is_told(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-ia"])
    asked = {"reclaim_within_cohort": "Any", "borrow_within_cohort": "LowerPriority", "check": "1"}
    plain = browser.post(path, posted(browser.get(path), **asked))
    assert "BORROW_WITHIN_COHORT_UNUSED" not in plain.text
    Cohort.objects.filter(name="llm").update(fairness="history")
    told = browser.post(path, posted(browser.get(path), **asked))
    assert "BORROW_WITHIN_COHORT_UNUSED" in told.text


def test_a_check_names_who_takes_and_what_is_lost(platform, ada, signed_in):
    at = timezone.now() - timedelta(hours=2)
    Workload.objects.exclude(status="pending").update(admitted_at=at)
    platform.train.admissions.update(admitted_at=at)
    world.work("ia", "urgent", gpus=4)
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-ia"])
    answer = browser.post(path, posted(browser.get(path), reclaim_within_cohort="Any", check="1"))
    (evicts,) = [f for f in answer.context["findings"] if f.code == "EDIT_EVICTS"]
    assert evicts.numbers["preemptors"] == "ns-ia/urgent"
    assert evicts.sentence == (
        "By this edit the next cycle evicts 1 for ns-ia/urgent: ns-datos/train."
        " 24.0 GPU-hours of work are lost."
    )


def test_a_mistake_in_shape_is_named_by_its_label(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-ia"])
    answer = browser.post(path, posted(browser.get(path), reason=""))
    assert "Reason: This field is required." in words(answer)


def test_the_first_edit_of_a_cohort_that_was_only_named_says_what_was_before(platform, ada):
    Cohort.objects.filter(name="llm").update(implicit=True)
    save_cohort(CohortSpec("llm", fairness="share"), actor=ada, reason="It shares now")
    entry = AuditEntry.objects.get(action="cohort.updated", subject="llm")
    assert (entry.before["fairness"], entry.after["fairness"]) == ("none", "share")
    assert (entry.before["declared"], entry.after["declared"]) == (False, True)
    save_cohort(CohortSpec("llm", fairness="share"), actor=ada)
    assert AuditEntry.objects.filter(action="cohort.updated", subject="llm").count() == 1
