"""A lead asks for quota, an admin decides with a reason, a loan ends by itself."""

from datetime import timedelta

import pytest
from django.test import Client

from gpuplatform.common import clock
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected
from queues.models import ClusterQueue, FlavorQuota, Namespace, QuotaRequest
from queues.services import requests
from queues.services.cells import save_cells
from queues.specs import CellSpec
from queues.tasks import end_due_loans
from tests.conftest import person
from tests.scheduling.loop import world
from tests.scheduling.loop.world import FLAVOR

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"
WHY, YES = "A paper deadline in two weeks", "Agreed with the lead of IA"
DAY = timedelta(days=1)


@pytest.fixture
def promises(db):
    world.nodes(4, gpus=4)
    queues = {name: world.queue(name, 8, cohort="llm") for name in ("datos", "ia")}
    for name, queue in queues.items():
        Namespace.objects.create(name=f"ns-{name}", team=queue.team)
    return queues


@pytest.fixture
def lead(promises):
    return person("lena", datos="lead")


@pytest.fixture
def admin(promises):
    return person("adam", role="admin")


def cell(nominal, queue="cq-datos", **limits):
    return CellSpec(queue, FLAVOR, GPU, nominal, **limits)


def ask(lead, promises, *cells, until=None, reason=WHY):
    team = promises["datos"].team
    return requests.ask_quota(list(cells), team, actor=lead, reason=reason, until=until)


def nominals():
    rows = FlavorQuota.objects.order_by("cluster_queue__name")
    return dict(rows.values_list("cluster_queue__name", "nominal"))


def test_asking_changes_nothing_and_says_what_it_was(promises, lead):
    row = ask(lead, promises, cell(12))
    assert nominals() == {"cq-datos": 8, "cq-ia": 8}
    (told,) = row.cells
    assert (told["nominal"], told["was"]["nominal"], row.state) == (12, 8, "open")
    entry = AuditEntry.objects.get(action="quota_request.asked")
    assert (entry.team, entry.reason, entry.actor_name) == ("datos", WHY, "lena")


def test_an_approval_gives_it_under_the_admins_reason(promises, lead, admin):
    row = requests.approve(ask(lead, promises, cell(12)), actor=admin, note=YES)
    assert (nominals(), row.state) == ({"cq-datos": 12, "cq-ia": 8}, "approved")
    edit = AuditEntry.objects.get(action="cluster_queue.updated")
    assert (edit.actor_name, edit.reason) == ("adam", f"Request #{row.pk}: {YES}")
    assert AuditEntry.objects.filter(action="quota_request.approved", reason=YES).exists()


def test_an_approval_adds_the_difference_to_what_was_edited_meanwhile(promises, lead, admin):
    row = ask(lead, promises, cell(12))
    save_cells([cell(10, borrowing_limit=3)], actor=admin, reason="More nodes have come")
    page = Client()
    page.force_login(admin)
    assert "10 → 14" in page.get(f"/requests/{row.pk}/").content.decode()
    requests.approve(row, actor=admin, note=YES)
    quota = FlavorQuota.objects.get(cluster_queue__name="cq-datos")
    assert (quota.nominal, quota.borrowing_limit) == (14, 3), "nobody asked for another limit"
    decided = page.get(f"/requests/{row.pk}/").content.decode()
    assert "The approval added the difference" in decided
    assert "10 → 14" in decided


def test_a_loan_comes_out_of_the_lenders_quota_and_goes_back_on_its_day(promises, lead, admin):
    until = clock.now() + DAY
    row = ask(lead, promises, cell(11), until=until)
    requests.approve(row, actor=admin, note=YES, lender="cq-ia")
    assert nominals() == {"cq-datos": 11, "cq-ia": 5}
    assert requests.end_loans(until - timedelta(seconds=1)) == []
    assert requests.end_loans(until) == [row.pk]
    assert nominals() == {"cq-datos": 8, "cq-ia": 8}
    row.refresh_from_db()
    assert (row.state, row.ended_at) == ("ended", until)
    assert AuditEntry.objects.get(action="quota_request.ended").actor_name == "system"
    assert requests.end_loans(until) == []  # twice is harmless


def test_what_was_edited_meanwhile_stays_when_a_loan_ends(promises, lead, admin):
    row = ask(lead, promises, cell(12, borrowing_limit=2), until=clock.now() + DAY)
    requests.approve(row, actor=admin, note=YES)
    FlavorQuota.objects.filter(cluster_queue__name="cq-datos").update(nominal=14, lending_limit=13)
    requests.end_loans(clock.now() + 2 * DAY)
    cells = FlavorQuota.objects.get(cluster_queue__name="cq-datos")
    assert (cells.nominal, cells.borrowing_limit, cells.lending_limit) == (10, None, 10)


def test_a_loan_whose_queue_is_gone_ends_without_it(promises, lead, admin):
    row = ask(lead, promises, cell(12), until=clock.now() + DAY)
    requests.approve(row, actor=admin, note=YES, lender="cq-ia")
    ClusterQueue.objects.get(name="cq-ia").delete()
    assert requests.end_loans(clock.now() + 2 * DAY) == [row.pk]
    assert nominals() == {"cq-datos": 8}


def test_the_task_ends_what_is_due_and_leaves_the_rest(promises, lead, admin):
    for_good = requests.approve(ask(lead, promises, cell(9)), actor=admin, note=YES)
    loan = ask(lead, promises, cell(10), until=clock.now() + DAY)
    requests.approve(loan, actor=admin, note=YES)
    QuotaRequest.objects.filter(pk=loan.pk).update(until=clock.now())
    end_due_loans()
    assert nominals()["cq-datos"] == 9
    for_good.refresh_from_db()
    assert for_good.state == "approved"


def test_a_refusal_needs_words_and_changes_nothing(promises, lead, admin):
    row = ask(lead, promises, cell(12))
    with pytest.raises(Rejected) as refused:
        requests.decline(row, actor=admin, note="no")
    assert refused.value.problems[0].code == "REQUEST_WHY"
    assert requests.decline(row, actor=admin, note="Nodes are due next month").state == "declined"
    assert nominals()["cq-datos"] == 8


@pytest.mark.parametrize("step", ["approve", "decline", "withdraw"])
def test_a_request_is_decided_once(promises, lead, admin, step):
    row = ask(lead, promises, cell(12))
    requests.withdraw(row, actor=lead)
    note = {} if step == "withdraw" else {"note": YES}
    with pytest.raises(Rejected) as refused:
        getattr(requests, step)(row, actor=admin, **note)
    assert refused.value.problems[0].code == "REQUEST_DECIDED"
    assert nominals()["cq-datos"] == 8


@pytest.mark.parametrize(
    ("cells", "more", "problem"),
    [
        ([], {}, ("REQUEST_EMPTY", "cells")),
        ([cell(9)], {"reason": "please"}, ("REQUEST_WHY", "reason")),
        ([cell(9)], {"until": clock.now() - DAY}, ("REQUEST_OVER_BEFORE", "until")),
        ([cell(9, "cq-ia")], {}, ("QUOTA_NO_QUEUE", "cells[0].queue")),
        ([cell(9, lending_limit=10)], {}, ("lending_above_nominal", "cells[0].lending_limit")),
    ],
)
def test_what_cannot_be_asked_is_refused(promises, lead, cells, more, problem):
    with pytest.raises(Rejected) as refused:
        ask(lead, promises, *cells, **more)
    assert [(p.code, p.path) for p in refused.value.problems] == [problem]
    assert not QuotaRequest.objects.exists()


def test_a_lender_that_has_less_lends_nothing_and_the_request_stays_open(promises, lead, admin):
    row = ask(lead, promises, cell(20))
    with pytest.raises(Rejected) as refused:
        requests.approve(row, actor=admin, note=YES, lender="cq-ia")
    (problem,) = refused.value.problems
    assert (problem.code, problem.numbers["need"], problem.numbers["have"]) == (
        "REQUEST_LENDER_SHORT",
        12,
        8,
    )
    row.refresh_from_db()
    assert (row.state, nominals()) == ("open", {"cq-datos": 8, "cq-ia": 8})


# ---- pages -------------------------------------------------------------------------------------
def browser(user):
    client = Client()
    client.force_login(user)
    return client


def test_a_lead_asks_and_an_admin_checks_and_approves_in_the_browser(promises, lead, admin):
    name = f"cq-datos|{FLAVOR}|{GPU}"
    day = (clock.now() + 3 * DAY).date().isoformat()
    amounts = {f"{name}-borrowing_limit": "", f"{name}-lending_limit": ""}
    sent = {f"{name}-nominal": "12", "reason": WHY, "last_day": day} | amounts
    where = browser(lead).post("/requests/new/", sent)["Location"]
    page = browser(lead).get(where).text
    assert "8 → 12" in page
    assert "For you to decide" not in page
    office = browser(admin)
    assert "At least 10 characters; the team reads it." in office.get(where).text
    decide = f"{where}decide/"
    checked = office.post(decide, {"check": "1", "lender": "cq-ia"})
    assert checked.status_code == 200
    assert "nothing is saved yet" in checked.text
    assert nominals() == {"cq-datos": 8, "cq-ia": 8}
    assert office.post(decide, {"approve": "1", "note": "yes"}).status_code == 422
    answer = office.post(decide, {"approve": "1", "note": YES, "lender": "cq-ia"})
    assert answer.status_code == 302
    assert nominals() == {"cq-datos": 12, "cq-ia": 4}
    assert "approved" in office.get("/requests/").text
    assert "added the difference" not in office.get(where).text  # it gave what was asked for


def test_only_an_admin_decides_and_strangers_see_nothing(promises, lead):
    row = ask(lead, promises, cell(12))
    assert browser(lead).post(f"/requests/{row.pk}/decide/", {"approve": "1"}).status_code == 403
    stranger = browser(person("ines", ia="lead"))
    assert stranger.get(f"/requests/{row.pk}/").status_code == 404
    assert f"#{row.pk}" not in stranger.get("/requests/").text
    assert browser(lead).post(f"/requests/{row.pk}/withdraw/").status_code == 302
    row.refresh_from_db()
    assert row.state == "withdrawn"
