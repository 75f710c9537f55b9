"""Pages of what all teams carry, and of the rules of a month."""

from decimal import Decimal
from html import unescape

import pytest
from django.urls import reverse

from finops import choosing
from finops.models import BillingPeriod, SharedCost
from gpuplatform.common.models import AuditEntry
from tests.finops.rows import JUNE

pytestmark = pytest.mark.django_db

RENT = {"name": "rent", "amount": "100.00", "method": "even", "reason": "The hall, and why so"}


def in_words(answer):
    """Return what the error summary says."""
    summary = answer.content.decode().partition("Nothing was saved")[2]
    return summary[: summary.index("</ul>")]


def test_a_shared_cost_is_set_followed_and_ended_on_pages(cast, signed_in):
    browser = signed_in(cast.fin)
    done = browser.post(reverse("shared-cost-new"), RENT | {"valid_from": "2031-01-01 00:00"})
    assert done.url == reverse("shared-costs")
    edit = reverse("shared-cost-edit", args=["rent"])
    form = browser.get(edit).context["form"]
    assert (form["name"].value(), form["amount"].value()) == ("rent", Decimal("100.00"))
    change = {"name": "other", "amount": "120.00", "valid_from": "2031-02-01 00:00"}
    browser.post(edit, RENT | change)  # it keeps its name
    end = reverse("shared-cost-end", args=["rent"])
    browser.post(end, {"valid_to": "2031-03-01 00:00", "reason": "Moved out, and why so"})
    rows = SharedCost.objects.order_by("valid_from")
    assert {row.name for row in rows} == {"rent"}
    assert [(row.amount, f"{row.valid_from:%m}", f"{row.valid_to:%m}") for row in rows] == [
        (100, "01", "02"),
        (120, "02", "03"),
    ]
    assert browser.get(edit).status_code == browser.get(end).status_code == 404
    page = unescape(browser.get(reverse("shared-costs")).content.decode())
    assert "2 costs are or were shared by all teams" in page
    assert "€120.00 a month" in page
    reasons = AuditEntry.objects.filter(subject_kind="SharedCost").values_list("reason", flat=True)
    assert set(reasons) == {"The hall, and why so", "Moved out, and why so"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"amount": ""}, "Name an amount of a month or a namespace, and not both."),
        ({"namespace": "platform"}, "Name an amount of a month or a namespace, and not both."),
        ({"cluster": "one"}, "Only a namespace is of a cluster."),
        ({"percentages": "datos"}, "Each line is a team and its percentage, like: datos 60"),
        ({"percentages": "datos 1\ndatos 2"}, "datos stands there twice."),
        ({"percentages": "datos 100"}, "Percentages go with the method fixed"),
        ({"method": "fixed", "percentages": "datos 60"}, "do not add up to 100"),
        ({"method": "fixed", "percentages": "who 100"}, "There is no such team."),
        ({"reason": ""}, "This field is required."),
    ],
)
def test_what_cannot_be_shared_is_said_at_its_field(cast, signed_in, change, said):
    answer = signed_in(cast.fin).post(reverse("shared-cost-new"), RENT | change)
    assert answer.status_code == 422
    assert said in in_words(answer)
    assert not SharedCost.objects.exists()


def test_fixed_parts_are_lines_of_team_and_number(cast, signed_in):
    parts = {"method": "fixed", "percentages": "datos 62.5 %\n\nia 37.5"}
    signed_in(cast.fin).post(reverse("shared-cost-new"), RENT | parts)
    assert SharedCost.objects.get().percentages == {"datos": "62.5", "ia": "37.5"}
    form = signed_in(cast.fin).get(reverse("shared-cost-edit", args=["rent"])).context["form"]
    assert form["percentages"].value() == "datos 62.5\nia 37.5"


@pytest.fixture
def june(db):
    return BillingPeriod.objects.create(
        name="2026-06", starts_at=JUNE, ends_at=JUNE.replace(month=7), currency="EUR"
    )


def test_the_rules_of_a_month_are_read_by_readers_and_changed_by_finance(june, cast, signed_in):
    address = reverse("month-rules", args=[june.name])
    read = signed_in(cast.aud).get(address).content.decode()
    assert "Hours of evicted work are paid by" in read
    assert "who ran it" in read
    assert "Bill by these rules" not in read
    browser = signed_in(cast.fin)
    asked = choosing.choices_of(june) | {
        "preempted": "not_charged",
        "reason": "As agreed, and why so",
        "seen": 1,
    }
    assert browser.post(address, asked).url == reverse("bills-month", args=[june.name])
    june.refresh_from_db()
    assert choosing.choices_of(june)["preempted"] == "not_charged"
    assert (
        AuditEntry.objects.get(action="billing_period.policy_chosen").reason
        == "As agreed, and why so"
    )


def test_rules_that_somebody_changed_meanwhile_are_not_written_over(june, cast, signed_in):
    choosing.choose(june.name, {"idle_basis": "day"}, cast.ada)
    asked = choosing.choices_of(june) | {"preempted": "not_charged", "reason": "?", "seen": 1}
    answer = signed_in(cast.fin).post(reverse("month-rules", args=[june.name]), asked)
    assert answer.status_code == 422
    assert "since they were seen" in in_words(answer)
    june.refresh_from_db()
    assert june.policy == {"idle_basis": "day"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"borrow_surcharge": "0.5"}, "A number from 1 to 100"),
        ({"lender_credit": "much"}, "A number from 0 to 1"),
        ({"preempted": "everybody"}, "Select a valid choice"),
    ],
)
def test_a_rule_that_is_none_changes_nothing(june, cast, signed_in, change, said):
    asked = choosing.choices_of(june) | {"reason": "As agreed, and why so", "seen": 1} | change
    address = reverse("month-rules", args=[june.name])
    answer = signed_in(cast.fin).post(address, asked)
    assert answer.status_code == 422
    assert said in in_words(answer)
    june.refresh_from_db()
    assert june.policy == {}
