"""What all teams carry: set from a day on, given out by its method, on every bill to the cent."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from finops import billing
from finops.models import BillingPeriod, BillLine, SharedCost
from finops.selectors.groups import CostQuery, cost_by_group
from finops.shared_costs import SharedSpec, end_shared_cost, set_shared_cost
from gpuplatform.common import clock
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected
from queues.access import Actor

from . import rows

pytestmark = pytest.mark.django_db
MONTH = "2026-06"
RENT = SharedSpec("rent", amount=Decimal("300.01"), valid_from=rows.JUNE)


@pytest.fixture(autouse=True)
def june():
    with time_machine.travel(rows.JULY + timedelta(days=1), tick=False):
        rows.june()
        yield


def shared():
    billing.rebuild_draft(MONTH)
    lines = BillLine.objects.filter(kind="shared").order_by("bill__team__name")
    return {line.bill.team.name: line.amount for line in lines}


def parts(**percent):
    return {team: Decimal(part) for team, part in percent.items()}


WAYS = [
    # of 300.01 a month: by what, and what datos, ia and plataforma carry
    ("even", {}, ("100.01", "100.00", "100.00")),
    ("weighted", {}, ("183.68", "73.47", "42.86")),
    ("fixed", parts(datos="50", ia="30", plataforma="20"), ("150.01", "90.00", "60.00")),
]


@pytest.mark.parametrize(("method", "percentages", "amounts"), WAYS)
def test_an_amount_of_a_month_is_given_out_to_the_cent(method, percentages, amounts):
    spec = SharedSpec(
        "rent",
        method,
        Decimal("300.01"),
        percentages=percentages,
        valid_from=rows.JUNE - timedelta(days=60),
    )
    set_shared_cost(spec, None, "the hall")
    found = shared()
    assert sum(found.values()) == Decimal("300.01")
    wanted = zip(("datos", "ia", "plataforma"), map(Decimal, amounts), strict=True)
    assert all(abs(found[team] - amount) <= Decimal("0.01") for team, amount in wanted)
    period = BillingPeriod.objects.get()
    assert (period.fixed_cost, period.total_cost) == (Decimal("300.01"), Decimal("4332.01"))


def test_half_a_month_is_half_of_it_and_what_follows_has_its_own_line():
    half = rows.JUNE + timedelta(days=15)
    set_shared_cost(RENT, None)
    set_shared_cost(SharedSpec("rent", amount=Decimal(600), valid_from=half), None)
    billing.rebuild_draft(MONTH)
    found = list(BillLine.objects.filter(kind="shared").values_list("amount", flat=True))
    assert len(found) == 6
    assert sum(found) == Decimal("150.01") + Decimal(300)
    first = SharedCost.objects.get(valid_to=half)
    assert first.amount == Decimal("300.01")


def test_a_month_that_goes_on_bears_the_hours_that_have_passed():
    set_shared_cost(SharedSpec("rent", amount=Decimal(300), valid_from=rows.JUNE), None)
    with time_machine.travel(rows.JUNE + timedelta(days=10), tick=False):
        assert sum(shared().values()) == Decimal("100.00")


def test_a_window_over_two_months_bears_its_days_of_each():
    set_shared_cost(SharedSpec("rent", amount=Decimal(310), valid_from=rows.JUNE), None)
    start, end = rows.JULY - timedelta(days=15), rows.JULY + timedelta(days=1)
    window = f"{start:%Y-%m-%dT%H:%M:%SZ},{end:%Y-%m-%dT%H:%M:%SZ}"
    query = CostQuery(window=window, group="type", kept={"type": "shared"})
    found = cost_by_group(Actor(None, frozenset({"finance"})), query, end).found
    assert found.total == Decimal("155.00") + Decimal("10.00")


def test_a_namespace_passes_on_what_landed_there():
    spec = SharedSpec("common", namespace="ns", valid_from=rows.JUNE)
    set_shared_cost(spec, None)
    billing.rebuild_draft(MONTH)
    period = BillingPeriod.objects.get()
    assert period.total_cost == Decimal("4032.00")


def test_equal_again_changes_nothing_and_an_end_is_from_then_on():
    row = set_shared_cost(RENT, None)
    assert set_shared_cost(RENT, None).pk == row.pk
    ended = end_shared_cost("rent", None, "moved out", rows.JUNE + timedelta(days=15))
    assert sum(shared().values()) == Decimal("150.01")  # 300.01 x 15 / 30, half up
    assert ended.valid_to == rows.JUNE + timedelta(days=15)
    assert end_shared_cost("rent", None) is None
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["shared_cost.set", "shared_cost.ended"]


def test_one_that_has_not_begun_is_taken_back_and_the_one_before_it_goes_on():
    rent = set_shared_cost(RENT, None)
    dearer = replace(RENT, amount=Decimal(900), valid_from=clock.now() + timedelta(days=9))
    set_shared_cost(dearer, None)
    taken = end_shared_cost("rent", None, "a typing mistake")
    rent.refresh_from_db()
    assert (SharedCost.objects.get(), rent.valid_to) == (rent, None)
    assert taken.valid_to == taken.valid_from
    assert AuditEntry.objects.latest("id").action == "shared_cost.taken_back"


@pytest.mark.parametrize(
    ("wrong", "path", "code"),
    [
        ({"name": "The Rent"}, "name", "bad_name"),
        ({"method": "dice"}, "method", "unknown_choice"),
        ({"namespace": "ns"}, "amount", "not_allowed"),
        ({"amount": None}, "amount", "not_allowed"),
        ({"amount": Decimal(0)}, "amount", "out_of_range"),
        ({"amount": Decimal("1.005")}, "amount", "not_cents"),
        ({"cluster": "c"}, "cluster", "not_allowed"),
        ({"method": "fixed"}, "percentages", "not_allowed"),
        ({"percentages": parts(ia="100")}, "percentages", "not_allowed"),
        ({"method": "fixed", "percentages": parts(ia="99")}, "percentages", "not_100"),
        (
            {"method": "fixed", "percentages": parts(ia="50", who="50")},
            "percentages.who",
            "unknown_team",
        ),
        ({"valid_to": rows.JUNE}, "valid_to", "empty_window"),
    ],
)
def test_what_cannot_be_shared_is_refused_with_its_field(wrong, path, code):
    fields = {"name": "rent", "amount": Decimal(1), "valid_from": rows.JUNE}
    with pytest.raises(Rejected) as caught:
        set_shared_cost(SharedSpec(**fields | wrong), None)
    assert (path, code) in [(one.path, one.code) for one in caught.value.problems]
    assert not SharedCost.objects.exists()


def test_two_at_a_time_and_a_change_of_a_closed_month_are_refused():
    set_shared_cost(RENT, None)
    with pytest.raises(Rejected) as caught:
        set_shared_cost(
            SharedSpec("rent", amount=Decimal(5), valid_from=rows.JUNE - timedelta(days=1)), None
        )
    assert caught.value.problems[0].code == "SHARED_COST_OVERLAPS"
    billing.rebuild_draft(MONTH)
    BillingPeriod.objects.update(status="closed")
    with pytest.raises(Rejected) as caught:
        end_shared_cost("rent", None, "", rows.JUNE + timedelta(days=1))
    assert caught.value.problems[0].code == "PERIOD_CLOSED"


def test_rest_sets_lists_and_ends(fin, lea, token_of, client):
    headers = {"Authorization": token_of(fin, "cost:read", "cost:close")}
    more = {"headers": headers, "content_type": "application/json"}
    body = {"method": "fixed", "amount": "90.00", "percentages": {"ia": "100"}}
    answer = client.put("/api/v1/shared-costs/rent/", body, **more)
    assert (answer.status_code, answer.json()["percentages"]) == (200, {"ia": "100"})
    seen = {"If-Match": client.get("/api/v1/shared-costs/rent/", headers=headers)["ETag"]}
    assert client.put("/api/v1/shared-costs/rent/", body, **more).status_code == 428
    stale = {**more, "headers": headers | {"If-Match": '"v999999"'}}
    assert client.put("/api/v1/shared-costs/rent/", body, **stale).status_code == 412
    writes = headers | seen
    more = {**more, "headers": writes}
    assert len(client.get("/api/v1/shared-costs/", headers=headers).json()) == 1
    wrong = client.put("/api/v1/shared-costs/rent/", body | {"amount": "-1.00"}, **more)
    assert wrong.status_code == 422
    assert client.put("/api/v1/shared-costs/rent/", {"colour": 1}, **more).status_code == 400
    with time_machine.travel(rows.JULY + timedelta(days=1, minutes=30)):
        assert client.delete("/api/v1/shared-costs/rent/", headers=writes).status_code == 204
        assert client.delete("/api/v1/shared-costs/rent/", headers=writes).status_code == 404
    reader = {"Authorization": token_of(lea, "cost:read")}
    assert client.get("/api/v1/shared-costs/", headers=reader).status_code == 404
