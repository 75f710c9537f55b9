"""Five people do their work in a browser against the running product: server, worker and beat."""

import csv
import io
import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tests.walks.walker import PASSWORD

pytestmark = [pytest.mark.services, pytest.mark.long]
REASON = "Agreed in the review of quotas"
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{kueue.x-k8s.io/queue-name: lq}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: train
        resources: {{requests: {{nvidia.com/gpu: "{gpus}"}}}}
"""
MOST_CLICKS = 3
A_MINUTE = 60  # what a busy machine may take for what takes a second


def amounts(text, column):
    return [Decimal(row[column]) for row in csv.DictReader(io.StringIO(text))]


# ---- the admin ---------------------------------------------------------------------------------
def onboard_vision(ada):
    """Make the team, its namespace, its queue and the door to it, and its lead, each by itself.

    All in one go, at ``/teams/onboard/``, is tried in ``tests/doors/test_onboarding.py``.
    """
    ada.page.goto("/teams/new/")
    ada.type(name="vision", display_name="Vision", reason=REASON)
    ada.press("Create team")
    ada.reads("Before Vision can work")
    ada.click("Give it a namespace")
    ada.type(namespace="ns-vision")
    ada.press("Add namespace")
    ada.click("Promise it a quota")
    ada.type(name="cq-vision", cohort="llm-platform", reason=REASON)
    ada.type(quota_0_flavor="h100-sxm", quota_0_nominal="2")
    ada.press("Create queue")
    ada.click("Vision")
    ada.click("Open a local queue")
    ada.type(name="lq")
    ada.press("Create local queue")
    ada.click("Invite its lead")  # the team and the role are filled in
    ada.type(username="vera", sign_in="typed")
    ada.type(password=PASSWORD, password_again=PASSWORD, reason=REASON)
    ada.press("Create person")
    ada.reads("vera")
    ada.page.goto("/teams/vision/")
    ada.reads("vera")
    assert "Before Vision can work" not in ada.page.inner_text("main")


def test_an_admin_onboards_a_team_and_the_predicted_evictions_happen(walk, product):
    ada = walk("ada")
    product.until(lambda: running(product, "tune"), "Plataforma has borrowed", A_MINUTE)
    onboard_vision(ada)

    vera = walk("vera")
    vera.rail("Submit")
    vera.type(text=JOB.format(name="detect", namespace="ns-vision", gpus=4))
    vera.press("Submit")
    vera.click("Follow ns-vision/detect")
    vera.headline("detect waits", soon=True)

    ada.home()
    ada.page.goto("/queues/cq-vision/")
    ada.click("Edit quota")
    ada.type(quota_0_nominal="4")
    ada.press("Preview")
    assert ada.clicks <= MOST_CLICKS
    told = ada.note("EDIT_EVICTS")
    predicted = [name for name in ("batch-eval", "tune") if name in told]
    assert len(predicted) == 1
    assert "for ns-vision/detect" in told  # it starts once that one has stopped
    assert ada.field("quota_0_nominal").input_value() == "4"
    assert not evicted(product)  # a preview is no edit

    ada.type(reason=REASON, confirm="cq-vision")
    ada.press("Apply change")
    ada.reads("cq-vision is saved.")
    vera.headline("detect runs", soon=True)  # by itself: the page was not loaded again
    assert evicted(product) == predicted
    ada.home()
    ada.rail("Borrowing")
    ada.click("Evictions")
    assert ada.page.locator("#ledger tbody th").all_inner_texts() == predicted
    ada.reads("detect", within="#ledger")


def evicted(product):
    query = (
        "SELECT DISTINCT w.name FROM scheduling_workloadevent e"
        " JOIN scheduling_workload w ON w.uid = e.workload_id WHERE e.kind = 'evicted'"
    )
    return sorted(row["name"] for row in product.rows(query))


def running(product, name):
    query = "SELECT status = 'running' FROM scheduling_workload WHERE name = %s"
    return product.one(query, name)


# ---- the lead ----------------------------------------------------------------------------------
def test_a_lead_reads_why_a_job_waits_and_what_the_bill_will_be(walk, product, tmp_path):
    product.until(lambda: running(product, "finetune"), "Datos uses its GPUs", A_MINUTE)
    product.manage("rebuild_bills", f"{datetime.now(UTC):%Y-%m}")  # as every few minutes
    lea = walk("lea")
    lea.home()
    lea.headline("want 4 more", soon=True)
    lea.click("Open the longest wait")
    lea.headline("distil waits")
    lea.reads("asks 4 GPUs · there 0 · missing 4", within=".why")
    lea.click("Look at cq-datos")
    assert lea.clicks <= MOST_CLICKS
    lea.reads("finetune")  # who has the GPUs now

    lea.home()
    lea.rail("Bills")
    lea.page.locator("tbody th a").first.click()  # the month that runs
    lea.click("Datos", within="main")
    assert lea.clicks + 1 <= MOST_CLICKS
    lea.reads("A draft: it is made anew")
    lea.reads("What the whole month will come to")
    text = lea.download(lambda: lea.click("CSV", within="main"), tmp_path)
    (total,) = lea.money(".bill-total .value")
    assert sum(amounts(text, "amount")) == total > 0


# ---- the member --------------------------------------------------------------------------------
def test_a_member_is_told_what_can_never_fit_corrects_it_and_follows_it_to_running(walk):
    rita = walk("rita")
    rita.home()
    rita.rail("Submit")
    rita.type(text=JOB.format(name="score", namespace="ns-riesgo", gpus=16))
    rita.press("Dry run")
    assert rita.clicks <= MOST_CLICKS
    rita.reads("nothing was kept")
    told = rita.page.inner_text("section:has(#h-results)")
    assert "never" in told
    assert "16 GPUs" in told
    assert "4" in told
    typed = rita.field("text").input_value()
    assert '"16"' in typed  # still there to be corrected
    rita.type(text=typed.replace('"16"', '"2"'))
    rita.press("Submit")
    rita.reads("accepted")
    rita.click("Follow ns-riesgo/score")
    rita.headline("score runs on 1 node", soon=True)
    rita.reads("l40s-node-01")


# ---- finance -----------------------------------------------------------------------------------
def test_finance_closes_a_month_and_its_file_adds_up_to_the_page(walk, tmp_path):
    fin = walk("fin")
    fin.home()
    fin.rail("Bills")
    fin.click("June 2026")
    fin.click("Close board")
    assert fin.clicks <= MOST_CLICKS
    fin.headline("Nothing stands in the way of closing June 2026")
    fin.press("Put forward")
    fin.press("I have reviewed these bills")
    fin.reads("a second person closes it")
    assert fin.page.get_by_role("button", name="Close the month").is_disabled()

    kim = walk("kim")
    kim.page.goto("/bills/2026-06/close/")
    kim.press("Close the month")
    kim.headline("June 2026 is closed and never changes again")
    kim.click("June 2026", within="main")
    text = kim.download(lambda: kim.click("CSV", within="main"), tmp_path)
    shown = kim.money("tbody td[data-label='Total']")
    by_team: dict[str, Decimal] = {}
    for row in csv.DictReader(io.StringIO(text)):
        by_team[row["team_id"]] = by_team.get(row["team_id"], Decimal(0)) + Decimal(row["amount"])
    assert sorted(by_team.values()) == sorted(shown)
    (together,) = kim.money("tfoot td[data-label='Total']")
    assert sum(by_team.values()) == sum(shown) == together == Decimal("4032.00")


# ---- two editors -------------------------------------------------------------------------------
def test_two_editors_collide_and_nothing_that_was_typed_is_lost(walk):
    ada, abe = walk("ada"), walk("abe")
    for admin in (ada, abe):
        admin.page.goto("/queues/cq-robots/edit/")
    ada.type(quota_0_nominal="1", fair_weight="2", reason="Robots moves into the hall")
    ada.press("Apply change")
    ada.reads("cq-robots is saved.")

    mine = "Robots pays for two more"
    abe.type(quota_0_nominal="3", minimum_runtime_s="600", reason=mine)
    abe.press("Apply change")
    abe.reads("Somebody else was faster")
    abe.reads("Robots moves into the hall")  # who, when and why
    heads = abe.page.locator("table.conflict thead th").all_inner_texts()
    assert heads == ["Value", "When you opened the form", "Theirs, now", "Yours"]
    rows = [
        re.split(r"\t", text)
        for text in abe.page.locator("table.conflict tbody tr").all_inner_texts()
    ]
    told = {label: values for label, *values in rows}
    (clash,) = [values for values in told.values() if values[:3] == ["0", "1", "3"]]
    assert clash
    kept = {"quota_0_nominal": "3", "minimum_runtime_s": "600", "reason": mine}
    assert {name: abe.field(name).input_value() for name in kept} == kept
    assert abe.field("fair_weight").input_value() == "2"  # hers, which he did not touch

    abe.press("Apply change")
    abe.reads("cq-robots is saved.")
    abe.click("Edit quota")
    saved = {name: abe.field(name).input_value() for name in ("quota_0_nominal", "fair_weight")}
    assert saved == {"quota_0_nominal": "3", "fair_weight": "2"}
    assert abe.field("minimum_runtime_s").input_value() == "600"


# ---- without a mouse ---------------------------------------------------------------------------
def test_a_quota_is_edited_without_a_mouse(walk):
    ada = walk("ada")
    keys = ada.page.keyboard
    ada.page.goto("/")
    keys.press("Control+k")
    keys.type("cq-maps")
    ada.page.wait_for_selector(".drop a >> text=cq-maps")
    keys.press("ArrowDown")
    keys.press("Enter")
    ada.page.wait_for_url("**/queues/cq-maps/")
    ada.tab_to("a[href$='/queues/cq-maps/edit/']")
    keys.press("Enter")
    ada.page.wait_for_url("**/edit/")
    ada.tab_to("[name=quota-0-nominal]")
    keys.press("Control+a")
    keys.type("many")
    ada.page.wait_for_selector("[data-preview-place] >> text=many is not an amount")  # as typed
    ada.tab_to("[name=reason]")
    keys.type("Maps begins")
    ada.tab_to("button[name=check]")
    keys.press("Enter")
    ada.page.wait_for_selector(".error-summary:focus")  # the focus moved to what is wrong
    ada.tab_to(".error-summary a")
    keys.press("Enter")
    assert ada.page.evaluate("document.activeElement.name") == "quota-0-nominal"
    keys.press("Control+a")
    keys.type("1")
    ada.tab_to("button[name=check]")
    keys.press("Enter")
    ada.page.wait_for_selector("section[role=status]:focus >> text=nothing is saved yet")
    assert ada.field("reason").input_value() == "Maps begins"
    ada.tab_to("form[method=post] button.is-primary")
    keys.press("Enter")
    ada.page.wait_for_url("**/queues/cq-maps/")
    ada.reads("cq-maps is saved.")
