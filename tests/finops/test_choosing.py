"""The rules of a month: each is one of the arithmetic's, chosen in one place, and bills follow."""

from datetime import timedelta
from decimal import Decimal
from typing import get_type_hints

import pytest
import time_machine

from finops import billing
from finops.allocation import facts
from finops.choosing import NUMBERS, WORDS, choices_of, choose
from finops.models import BillingPeriod, BillLine
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected

from . import rows

pytestmark = pytest.mark.django_db
MONTH = "2026-06"


@pytest.fixture(autouse=True)
def june():
    with time_machine.travel(rows.JULY + timedelta(days=1), tick=False):
        rows.june()
        yield billing.rebuild_draft(MONTH)


def lines(kind):
    return list(BillLine.objects.filter(kind=kind).values_list("amount", flat=True))


def test_every_choice_of_the_arithmetic_has_its_door():
    known = set(get_type_hints(facts.Policy)) - {"idle", "detail"}
    assert set(WORDS) | set(NUMBERS) == known


def test_a_surcharge_and_a_credit_move_money_between_accounts():
    before = BillingPeriod.objects.get().total_cost
    choose(MONTH, {"borrow_surcharge": "1.50", "lender_credit": "0.1"}, None, "as agreed")
    # 540 GPU-hours of datos are borrowed, at 1.40
    assert sorted(lines("loan_surcharge")) == [Decimal("-378.00"), Decimal("378.00")]
    assert sum(lines("lender_credit")) == 0
    assert BillingPeriod.objects.get().total_cost == before
    entry = AuditEntry.objects.get(action="billing_period.policy_chosen")
    assert entry.before == {"borrow_surcharge": "1", "lender_credit": "0"}
    assert (entry.after, entry.reason) == (
        {"borrow_surcharge": "1.5", "lender_credit": "0.1"},
        "as agreed",
    )


def test_a_choice_that_is_the_default_is_none_and_the_others_stay():
    choose(MONTH, {"idle_basis": "day", "preempted": "not_charged"}, None)
    choose(MONTH, {"idle_basis": "period"}, None)
    period = BillingPeriod.objects.get()
    assert period.policy == {"preempted": "not_charged"}
    assert choices_of(period)["idle_basis"] == "period"


@pytest.mark.parametrize(
    ("wanted", "path", "code"),
    [
        ({"colour": "red"}, "colour", "unknown_choice"),
        ({"idle": "even"}, "idle", "unknown_choice"),
        ({"idle_basis": "week"}, "idle_basis", "BAD_VALUE"),
        ({"lender_credit": "1.01"}, "lender_credit", "OUT_OF_RANGE"),
        ({"borrow_surcharge": "NaN"}, "borrow_surcharge", "OUT_OF_RANGE"),
        ({"borrow_surcharge": "0.5"}, "borrow_surcharge", "OUT_OF_RANGE"),
        ({"lender_credit": "0.123456789"}, "lender_credit", "OUT_OF_RANGE"),
    ],
)
def test_what_cannot_be_chosen_is_refused_and_changes_nothing(wanted, path, code):
    with pytest.raises(Rejected) as caught:
        choose(MONTH, {"idle_basis": "day"} | wanted, None)
    assert [(one.path, one.code) for one in caught.value.problems] == [(path, code)]
    assert BillingPeriod.objects.get().policy == {}


def test_owners_pay_their_idle_only_where_use_is_our_own_meterings():
    billing.choose_idle_policy(MONTH, "owner", None)
    with pytest.raises(Rejected, match="own metering"):
        choose(MONTH, {"usage_source": "opencost"}, None)
    billing.choose_idle_policy(MONTH, "even", None)
    choose(MONTH, {"usage_source": "opencost"}, None)
    with pytest.raises(Rejected, match="own metering"):
        billing.choose_idle_policy(MONTH, "owner_net", None)


def test_a_closed_month_keeps_its_rules():
    BillingPeriod.objects.update(status="closed")
    with pytest.raises(Rejected):
        choose(MONTH, {"idle_basis": "day"}, None)
    assert BillingPeriod.objects.get().policy == {}
