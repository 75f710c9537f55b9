"""What comes late: adjustments of an open month that add up to the difference, and no more."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from finops import billing
from finops.closing.adjusting import AdjustmentSpec, adjust
from finops.closing.late import book_late_data, differences
from finops.models import Adjustment, Bill, BillingPeriod, BillLine
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected
from queues.models import Team
from scheduling.models import CapacityInterval, UsageInterval
from tests.conftest import person
from tests.finops import rows

from .world import JULY, JUNE, charged_june, close

pytestmark = pytest.mark.django_db
LATER = rows.JULY + timedelta(days=3)
HOUR = timedelta(hours=1)


def late_use(team, gpus, hours, first=702):
    """Meter more; IA's own hours end at 702."""
    start = rows.JUNE + first * HOUR
    return rows.use(team, gpus, start, start + hours * HOUR)


def amounts(period=JULY):
    return {
        (row.team.name if row.team else "central", row.original_line): row.amount
        for row in Adjustment.objects.filter(period__name=period).select_related("team")
    }


def frozen():
    bills = Bill.objects.filter(period__name=JUNE).order_by("pk")
    return list(bills.values_list("team__name", "total")), list(
        BillLine.objects.filter(bill__in=bills).values_list()
    )


def test_late_hours_are_charged_in_the_next_open_month_and_taken_from_idle(fin, ada):
    teams = charged_june()
    close(fin, ada)
    before = frozen()
    late_use(teams["ia"], 1, 10)
    assert book_late_data(LATER) == [JUNE]
    assert amounts() == {
        ("ia", "GPU-2026-000002#1"): Decimal("14.00"),
        ("central", "2026-06/central#1"): Decimal("-14.00"),
    }
    assert frozen() == before
    line = BillLine.objects.get(bill__period__name=JULY, bill__team=teams["ia"], kind="adjustment")
    assert (line.amount, line.original_line) == (Decimal("14.00"), "GPU-2026-000002#1")
    assert "2026-06" in line.note
    assert AuditEntry.objects.filter(action="billing_period.corrected").count() == 1


@pytest.mark.parametrize(
    ("team", "line"),
    [("ia", "GPU-2026-000002#1"), ("ia", "2026-06/ia#1"), ("", "2026-06/central#1")],
)
def test_a_correction_by_hand_names_a_line_of_its_account_that_was_closed(fin, ada, team, line):
    charged_june()
    close(fin, ada)
    billing.rebuild_draft(JULY, now=LATER)
    july = AdjustmentSpec(team, Decimal("-1.00"), "Agreed with the lead", JUNE, line)
    assert adjust(JULY, july, fin).original_line == line
    others = ("GPU-2026-000001#1", "2026-06/datos#1", "2026-06/central#1" if team else line[:7])
    unknown = ("GPU-2026-000002#99", "GPU-2026-000099#1", "2026-07/ia#1", "#1", "x", "²#²")
    for wrong in (*others, *unknown):
        with pytest.raises(Rejected) as refused:
            adjust(JULY, replace(july, original_line=wrong), fin)
        assert [one.path for one in refused.value.problems] == ["original_line"]


def test_booking_twice_is_booking_once_and_follows_what_is_known(fin, ada):
    teams = charged_june()
    close(fin, ada)
    first = late_use(teams["ia"], 1, 10)
    book_late_data(LATER)
    rows_before = list(Adjustment.objects.values_list("pk", flat=True))
    assert book_late_data(LATER + HOUR) == []
    assert list(Adjustment.objects.values_list("pk", flat=True)) == rows_before
    UsageInterval.objects.filter(workload=first).delete()
    assert book_late_data(LATER + 2 * HOUR) == [JUNE]
    assert amounts() == {}
    assert BillingPeriod.objects.get(name=JULY).adjustment_cost == 0


def test_what_is_below_the_threshold_is_not_booked_until_it_grows(fin, ada):
    teams = charged_june()
    close(fin, ada)
    third = timedelta(minutes=20)  # 0.47
    start = rows.JUNE + 702 * HOUR
    rows.use(teams["ia"], 1, start, start + third)
    assert book_late_data(LATER) == []
    assert amounts() == {}
    rows.use(teams["ia"], 1, start + third, start + 2 * third)
    assert book_late_data(LATER) == [JUNE]
    assert amounts()["ia", "GPU-2026-000002#1"] == Decimal("0.93")


def test_a_team_that_had_no_bill_gets_its_line_by_name(fin, ada):
    charged_june()
    close(fin, ada)
    rows.make_team("newcomers")
    late_use(Team.objects.get(name="newcomers"), 1, 10)
    book_late_data(LATER)
    found = {team: line for team, line in amounts() if team == "newcomers"}
    assert found["newcomers"].startswith("2026-06/newcomers#new gpu_")
    assert Bill.objects.get(period__name=JULY, team__name="newcomers").total == Decimal("14.00")


def test_more_capacity_found_later_costs_the_central_account(fin, ada):
    charged_june()
    close(fin, ada)
    CapacityInterval.objects.create(
        node="h100-node-02",
        flavor=rows.FLAVOR,
        resource=rows.GPU,
        amount=4,
        started_at=rows.JUNE,
        ended_at=rows.JUNE + 10 * HOUR,
    )
    book_late_data(LATER)
    assert amounts() == {("central", "2026-06/central#1"): Decimal("56.00")}
    july = BillingPeriod.objects.get(name=JULY)
    assert july.adjustment_cost == Decimal("56.00")
    billed = sum(bill.total for bill in july.bills.all())
    assert billed == july.capacity_cost + july.adjustment_cost


def test_adjustments_of_a_closed_month_stand_and_only_the_rest_comes_after(fin, ada):
    teams = charged_june()
    close(fin, ada)
    late_use(teams["ia"], 1, 10)
    book_late_data(LATER)
    august = rows.JULY + timedelta(days=33)
    close(fin, ada, month=JULY, now=august)
    late_use(teams["ia"], 1, 5, first=712)
    assert JUNE in book_late_data(august + HOUR)
    assert amounts(JULY)["ia", "GPU-2026-000002#1"] == Decimal("14.00")
    assert amounts("2026-08")["ia", "GPU-2026-000002#1"] == Decimal("7.00")
    assert sum(amounts("2026-08").values()) == 0


class Laws(TestCase):
    """Whatever comes late: closed and corrected together are what the month would be today."""

    @settings(max_examples=5)
    @given(
        late=st.lists(
            st.tuples(
                st.sampled_from(["datos", "ia", "plataforma"]),
                st.integers(1, 3),
                st.integers(0, 700),
                st.integers(1, 40),
            ),
            min_size=1,
            max_size=4,
        ),
        policy=st.sampled_from(["separate", "proportional", "owner_net"]),
    )
    def test_adjustments_add_up_to_the_difference(self, late, policy):
        fin, ada = person("fin", role="finance"), person("ada", role="admin")
        teams = charged_june()
        billing.choose_idle_policy(JUNE, policy, None)
        close(fin, ada)
        for number, (team, gpus, first, hours) in enumerate(late):
            late_use(teams[team], gpus, min(hours, 720 - first), first=first)
            if number == len(late) // 2:
                book_late_data(LATER)
        book_late_data(LATER)
        june = BillingPeriod.objects.get(name=JUNE)
        booked = sum((row.amount for row in Adjustment.objects.all()), Decimal(0))
        wanted = differences(june, LATER)
        assert {(n.team or "central", n.line): a for n, a in wanted.items()} == amounts()
        assert booked == sum(wanted.values(), Decimal(0)) == 0, "the capacity was the same"
        july = BillingPeriod.objects.get(name=JULY)
        assert (
            sum(bill.total for bill in july.bills.all())
            == july.capacity_cost + july.adjustment_cost
        )
