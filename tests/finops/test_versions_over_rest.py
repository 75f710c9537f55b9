"""Objects of money that people edit are changed over REST by those who saw what they change."""

from decimal import Decimal

import pytest

from finops.budgets.saving import BudgetSpec, save_budget
from finops.ingest.configuring import save_source
from finops.models import BillingPeriod, Budget, Source
from finops.specs import SourceSpec
from gpuplatform.common.models import AuditEntry
from tests.finops import rows

pytestmark = pytest.mark.django_db
JSON = "application/json"
BUDGET, SOURCE = "/api/v1/budgets/datos-june/", "/api/v1/sources/gateway/"
BODIES = {
    BUDGET: {"scope": "team", "subject": "datos", "measure": "money", "limit": "5.00"},
    SOURCE: {"kind": "litellm_database", "currency": "USD"},
}


@pytest.fixture(autouse=True)
def standing(ada):
    rows.make_team("datos")
    save_budget(BudgetSpec("datos-june", "team", "datos", "money", Decimal(100)), ada)
    save_source(SourceSpec(name="gateway", kind="litellm_database", currency="EUR"), ada)


def put(client, path, seen=None, **more):
    headers = {"If-Match": seen} if seen else {}
    return client.put(path, BODIES[path] | more, content_type=JSON, headers=headers)


@pytest.mark.parametrize("path", BODIES)
def test_a_change_says_which_version_was_seen(ada, signed_in, path):
    client = signed_in(ada)
    assert client.get(path)["ETag"].startswith('"v1-')
    assert put(client, path).status_code == 428
    assert put(client, path, '"v7"').status_code == 412
    changed = put(client, path, '"v1"')
    assert (changed.status_code, changed["ETag"][:4]) == (200, '"v2-')
    assert put(client, path, "v1").status_code == 412
    assert client.get(path)["ETag"] == changed["ETag"]


@pytest.mark.parametrize(("path", "kind"), [(BUDGET, Budget), (SOURCE, Source)])
def test_what_is_not_there_is_made_without_a_version_and_with_none_else(
    ada, signed_in, path, kind
):
    client = signed_in(ada)
    kind.objects.all().delete()
    for seen in ('"v1"', "*"):
        assert put(client, path, seen).status_code == 412
    assert not kind.objects.exists()
    made = put(client, path)
    assert (made.status_code, made["ETag"][:4]) == (201, '"v1-')


def test_a_budget_goes_only_as_it_was_seen_and_the_reason_is_kept(ada, fin, signed_in):
    client = signed_in(fin)
    assert client.delete(BUDGET).status_code == 428
    for seen in ('"v2"', "*"):  # whatever it is: for admins only
        assert client.delete(BUDGET, headers={"If-Match": seen}).status_code == 412
    gone = client.delete(f"{BUDGET}?reason=closed+down", headers={"If-Match": '"v1"'})
    assert gone.status_code == 204
    assert AuditEntry.objects.latest("id").reason == "closed down"
    assert not Budget.objects.exists()
    assert client.delete(BUDGET, headers={"If-Match": '"v1"'}).status_code == 404


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (BUDGET, "is_hard", "yes"),
        (BUDGET, "is_hard", 1),
        (BUDGET, "version", -1),
        (SOURCE, "enabled", "off"),
    ],
)
def test_a_field_of_another_kind_is_refused_by_its_name(ada, signed_in, path, field, value):
    refused = put(signed_in(ada), path, '"v1"', **{field: value})
    assert refused.status_code == 400
    assert [one["pointer"] for one in refused.json()["errors"]] == [f"/{field}"]
    assert (Budget.objects.get().version, Source.objects.get().version) == (1, 1)


def test_a_new_budget_in_the_browser_never_replaces_another(fin, signed_in):
    typed = {"name": "datos-june", "scope": "team", "team": "datos", "measure": "money"}
    typed |= {
        "limit": "1",
        "duration": "1mo",
        "thresholds": "50",
        "reason": "a new one, and why so",
    }
    again = signed_in(fin).post("/budgets/new/", typed)
    assert again.status_code == 422
    assert "There is a budget called datos-june already." in again.content.decode()
    assert Budget.objects.get().limit == 100


def test_a_page_that_is_older_than_the_budget_does_not_take_it_away(fin, signed_in):
    client, row = signed_in(fin), Budget.objects.get()
    assert f'name="seen" value="{row.version}"' in client.get("/budgets/datos-june/edit/").text
    for typed in (
        {"reason": "old, and why so", "seen": "9"},
        {"reason": "", "seen": "1"},
        {"reason": "x, and why so"},
    ):
        assert client.post("/budgets/datos-june/delete/", typed).status_code == 302
    assert Budget.objects.exists()
    client.post("/budgets/datos-june/delete/", {"reason": "done, and why so", "seen": "1"})
    assert not Budget.objects.exists()


RULES = "/api/v1/periods/2026-06/policy/"


def choose(client, word, seen=None):
    headers = {"If-Match": seen} if seen else {}
    return client.patch(RULES, {"idle_basis": word}, content_type=JSON, headers=headers)


@pytest.fixture
def june():
    return BillingPeriod.objects.create(
        name="2026-06", starts_at=rows.JUNE, ends_at=rows.JULY, currency="EUR"
    )


def test_the_rules_of_a_month_are_chosen_by_who_saw_them(june, fin, signed_in):
    client = signed_in(fin)
    assert client.get(RULES)["ETag"] == '"v1"'
    assert choose(client, "day").status_code == 428
    assert choose(client, "day", '"v2"').status_code == 412
    chosen = choose(client, "day", '"v1"')
    assert (chosen.status_code, chosen["ETag"], chosen.json()["version"]) == (200, '"v2"', 2)
    assert choose(client, "period", '"v1"').status_code == 412
    assert client.get(RULES).json()["policy"]["idle_basis"] == "day"
    # What is chosen already changes nothing, and is no new version.
    assert choose(client, "day", '"v2"')["ETag"] == '"v2"'


@pytest.mark.parametrize("body", ["0", "[]", '{"idle_basis": ["day"]}', '{"idle_basis": null}'])
def test_rules_that_are_no_words_are_refused(june, fin, signed_in, body):
    headers = {"If-Match": '"v1"'}
    answer = signed_in(fin).patch(RULES, body, content_type=JSON, headers=headers)
    assert answer.status_code == 400
