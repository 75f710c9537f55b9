"""A new team in one go: everything or nothing, every mistake at its field, nothing typed lost."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.urls import reverse

from finops.billing import period_at
from finops.models import BillingPeriod, Budget, SharedCost
from gpuplatform.common import clock
from gpuplatform.common.models import AuditEntry
from gpuplatform.doors.importer import import_documents
from queues.access import actor_for
from queues.forms.promises import RECOMMENDED_QUEUE, QueueForm
from queues.models import ClusterQueue, Cohort, LocalQueue, Membership, Namespace, Team, User
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db
REASON = "Vision was split in two"
PATH = "/teams/onboard/"
# What a browser sends: three rows of people, two namespaces, one line of quota.
ROWS = {
    f"{prefix}-{name}": str(count)
    for prefix, total in (("people", 3), ("doors", 2), ("quota", 1))
    for name, count in (("TOTAL_FORMS", total), ("INITIAL_FORMS", 0))
}
WHOLE = ROWS | {
    "name": "nova",
    "display_name": "Nova",
    "cost_center": "CC-17",
    "accounting_mode": "chargeback",
    "people-0-username": "ian",
    "people-0-role": "lead",
    "people-1-username": "newton",
    "people-1-role": "member",
    "people-1-is_new": "on",
    "people-1-first_name": "Nia",
    "people-1-email": "nia@example.org",
    "people-2-role": "member",
    "doors-0-namespace": "ns-nova",
    "doors-0-local_queue": "lq-nova",
    "doors-1-namespace": "ns-nova-dev",
    "queue-which": "new",
    "queue-name": "cq-nova",
    "queue-cohort": "llm",
    "quota-0-flavor": "h100-sxm",
    "quota-0-resource": "nvidia.com/gpu",
    "quota-0-nominal": "4",
    "quota-0-borrowing_limit": "2",
    "budget-limit": "12000",
    "budget-thresholds": "50, 80",
    "reason": REASON,
}
CHECK = WHOLE | {"check": "1"}


@pytest.fixture
def admin(ada, ian, signed_in):
    world.nodes(2, gpus=4)
    world.queue("datos", 8, cohort="llm")
    return signed_in(ada)


def errors(page):
    """Return every error of the page by the name of its field."""
    return {
        form[name].html_name: list(found)
        for form in page.context["form"].all()
        for name, found in form.errors.items()
        if name != "__all__"
    }


def counts():
    kinds = (Team, User, Membership, Namespace, ClusterQueue, LocalQueue, Budget, AuditEntry)
    return [kind.objects.count() for kind in kinds]


def test_a_check_says_what_a_late_team_bears_of_the_whole_month(admin):
    assert "equal part of what all teams share" not in admin.post(PATH, CHECK).content.decode()
    about = {"amount": "300", "currency": "EUR", "valid_from": datetime(2026, 1, 1, tzinfo=UTC)}
    SharedCost.objects.create(name="licences", method="even", **about)
    SharedCost.objects.create(name="rent", method="weighted", **about)
    BillingPeriod.objects.filter(pk=period_at(clock.now()).pk).update(idle_policy="even")
    page = admin.post(PATH, CHECK).content.decode()
    assert "equal part of what all teams share" in page
    assert "licences, all idle of the cluster." in page
    assert "rent" not in page.partition("equal part")[2].partition("</p>")[0]


def test_a_whole_team_is_made_in_one_go_under_one_request_id(admin, client):
    page = admin.post(PATH, WHOLE)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    team = Team.objects.get(name="nova")
    assert (team.cost_center, team.accounting_mode) == ("CC-17", "chargeback")
    roles = dict(team.memberships.values_list("user__username", "role"))
    assert roles == {"ian": "lead", "newton": "member"}
    assert set(team.namespaces.values_list("name", flat=True)) == {"ns-nova", "ns-nova-dev"}
    queue = ClusterQueue.objects.get(name="cq-nova")
    assert (queue.team, queue.cohort) == (team, Cohort.objects.get(name="llm"))
    cell = queue.quotas.get()
    assert (cell.flavor, cell.nominal, cell.borrowing_limit) == ("h100-sxm", 4, 2)
    door = LocalQueue.objects.get(namespace="ns-nova")
    assert (door.name, door.cluster_queue) == ("lq-nova", "cq-nova")
    budget = Budget.objects.get(name="nova-month")
    assert (budget.team, budget.limit, budget.thresholds) == (team, Decimal(12000), [50, 80])
    written = AuditEntry.objects.filter(request_id=page["X-Request-ID"])
    assert set(written.exclude(reason="").values_list("reason", flat=True)) == {REASON}
    assert {
        "team.created",
        "user.created",
        "membership.set",
        "namespace.created",
        "cluster_queue.created",
        "local_queue.created",
        "budget.created",
    } == set(written.values_list("action", flat=True))
    [place] = page.context["secrets"]
    assert client.login(username="newton", password=place.password)
    assert place.password in page.text
    assert place.password not in str(list(AuditEntry.objects.values()))
    assert place.password not in admin.get("/teams/nova/begin/").text


def test_a_check_tells_what_would_be_written_and_keeps_nothing(admin):
    before = counts()
    page = admin.post(PATH, WHOLE | {"check": "1", "reason": ""})
    assert page.status_code == 200
    assert counts() == before
    told = [change.entry.action for change in page.context["changes"]]
    assert told[0] == "team.created"
    assert "budget.created" in told
    # 8 and 4 are promised where there are 8: the quota editor's own finding.
    codes = {finding.code for finding in page.context["findings"]}
    assert "GUARANTEES_EXCEED_CAPACITY" in codes
    assert 'value="cq-nova"' in page.text


@pytest.mark.parametrize(
    ("typed", "field", "words"),
    [
        ({"name": "Nova Team"}, "name", "lower-case"),
        ({"name": "datos"}, "name", "already"),
        ({"name": "onboard"}, "name", "taken by the platform"),
        ({"accounting_mode": "gift"}, "accounting_mode", "valid choice"),
        ({"people-0-username": "ghost"}, "people-0-username", "nobody has this user name"),
        ({"people-1-username": "ADA"}, "people-1-username", "there already"),
        ({"people-2-username": "ian"}, "people-2-username", "named twice"),
        ({"people-1-is_new": ""}, "people-1-is_new", "tick this"),
        ({"people-1-username": ""}, "people-1-username", "choose a user name"),
        ({"people-1-email": "nia"}, "people-1-email", "valid email"),
        ({"doors-0-namespace": "NS"}, "doors-0-namespace", "lower-case"),
        ({"doors-0-local_queue": "lq nova"}, "doors-0-local_queue", "lower-case"),
        ({"doors-1-namespace": "", "doors-1-local_queue": "x"}, "doors-1-namespace", "namespace"),
        ({"queue-name": ""}, "queue-name", "say which queue"),
        ({"queue-name": "cq-datos"}, "queue-name", "already"),
        ({"queue-which": "none"}, "queue-which", "named below"),
        ({"queue-which": "none", "queue-name": ""}, "queue-which", "choose one"),
        ({"queue-which": "free", "queue-name": "", "queue-free": "cq-datos"}, "queue-free", ""),
        ({"quota-0-nominal": "4.5"}, "quota-0-nominal", "4.5"),
        ({"quota-0-nominal": "-4"}, "quota-0-nominal", ""),
        ({"queue-cohort": ""}, "quota-0-borrowing_limit", "cohort"),
        ({"budget-limit": "1e13"}, "budget-limit", ""),
        ({"budget-thresholds": "0"}, "budget-thresholds", "percentages"),
        ({"reason": "short"}, "reason", "10"),
    ],
)
def test_a_mistake_stands_at_its_field_and_nothing_is_made(admin, typed, field, words):
    before = counts()
    page = admin.post(PATH, WHOLE | typed)
    assert page.status_code == 422
    assert counts() == before
    found = errors(page)
    assert list(found) == [field]
    assert words in " ".join(found[field])
    assert f'id="id_{field}"' in page.text
    assert [line["field"] for line in page.context["problems"]] == [f"id_{field}"]


def test_mistakes_of_all_parts_are_told_at_once_and_nothing_typed_is_lost(admin):
    typed = {
        "name": "datos",
        "people-0-username": "ghost",
        "doors-0-namespace": "NS",
        "doors-0-local_queue": "LQ",
        "queue-name": "cq datos",
        "quota-0-nominal": "many",
        "budget-limit": "-5",
    }
    page = admin.post(PATH, WHOLE | typed)
    found = errors(page)
    # The quota is no amount, so the queue as a whole could not be asked about yet.
    assert set(found) == set(typed) - {"queue-name"}
    assert len(page.context["problems"]) == len(found)
    for value in ("ghost", "NS", "LQ", "cq datos", "many", "-5", "nia@example.org", "CC-17"):
        assert f'value="{value}"' in page.text


def test_a_team_may_be_made_without_the_rest_and_is_told_what_is_missing(admin):
    bare = ROWS | {
        "name": "nova",
        "display_name": "Nova",
        "accounting_mode": "showback",
        "queue-which": "none",
        "people-0-role": "lead",
        "people-1-role": "member",
        "people-2-role": "member",
        "budget-thresholds": "50, 80, 100",
    }
    page = admin.post(PATH, bare | {"check": "1"})
    assert page.context["gaps"] == {"lead": True, "doors": True, "queue": True}
    answer = admin.post(PATH, bare)
    assert (answer.status_code, answer["Location"]) == (302, "/teams/nova/begin/")
    assert not Budget.objects.exists()
    assert "No local queue yet" in admin.get(answer["Location"]).text


def test_a_queue_that_belongs_to_nobody_becomes_the_teams(admin):
    ClusterQueue.objects.filter(name="cq-datos").update(team=None)
    typed = {"queue-which": "free", "queue-free": "cq-datos", "queue-name": ""}
    typed |= {"quota-0-flavor": "", "quota-0-nominal": "", "quota-0-borrowing_limit": ""}
    assert admin.post(PATH, WHOLE | typed).status_code == 200
    queue = ClusterQueue.objects.get(name="cq-datos")
    assert (queue.team.name, queue.quotas.get().nominal) == ("nova", 8)
    assert LocalQueue.objects.get(name="lq-nova").cluster_queue == "cq-datos"


def test_a_namespace_that_is_taken_from_another_team_is_told_before(admin):
    Namespace.objects.create(name="ns-nova", team=Team.objects.get(name="datos"))
    page = admin.post(PATH, WHOLE | {"check": "1"})
    assert "<s>datos</s> nova" in page.text


def test_the_lead_finds_commands_that_work(admin, ian, signed_in, lea):
    admin.post(PATH, WHOLE)
    page = signed_in(ian).get(reverse("team-begin", args=["nova"]))
    assert "gpuctl login http://testserver" in page.text
    assert "gpuctl avail -q cq-nova" in page.text
    report = import_documents(page.context["example"], actor=actor_for(ian), dry_run=True)
    assert not report.all_rejected
    assert signed_in(lea).get(reverse("team-begin", args=["nova"])).status_code == 404


def test_a_new_queue_is_what_the_queue_form_recommends(db):
    shown = {k: str(v) for k, v in QueueForm.initial_of(None).items() if v is not False}
    form = QueueForm(shown | {"name": "cq"}, is_new=True)
    assert form.is_valid(), form.errors
    made = form.to_spec((), None)
    assert made == type(made)(**_values(RECOMMENDED_QUEUE) | {"name": "cq", "team": ""})


def _values(spec):
    return {name: getattr(spec, name) for name in spec.__dataclass_fields__}
