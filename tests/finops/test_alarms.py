"""Alerts about money: raised when it begins to hold, cleared when it ends, told to whom it is."""

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from finops import billing
from finops.alarms import watch_cost
from finops.budgets.measuring import measure_budgets
from finops.budgets.saving import BudgetSpec, save_budget
from finops.models import BillingPeriod, Budget, BudgetState, Coverage, Fetch, Source
from queues.access import Actor
from scheduling.models import Alert
from scheduling.selectors.alerts import alert_lines
from scheduling.watch import watch

from . import rows

pytestmark = pytest.mark.django_db
LATE = rows.JUNE + timedelta(days=29)


@pytest.fixture
def clock():
    with time_machine.travel(LATE, tick=False) as traveller:
        yield traveller


def standing():
    found = Alert.objects.filter(cleared_at=None).order_by("code", "key")
    return [(one.code, one.subject) for one in found]


def budget(fin, limit, **more):
    fields = {"scope": "team", "subject": "datos", "measure": "money", "limit": Decimal(limit)}
    return save_budget(BudgetSpec("june", **fields | more), fin)


LEVELS = [
    # of 1,512.00 spent: the limit, and what is told of it
    ("4000", []),
    ("3000", [("BUDGET_THRESHOLD", "Budget/june")]),
    ("1512", [("BUDGET_EXHAUSTED", "Budget/june")]),
    ("1513", [("BUDGET_THRESHOLD", "Budget/june")]),
]


@pytest.mark.parametrize(("limit", "told"), LEVELS)
def test_a_budget_tells_at_its_thresholds_and_when_it_is_gone(fin, clock, limit, told):
    rows.june()
    budget(fin, limit)
    measure_budgets()
    watch_cost()
    assert standing() == told


def test_a_budget_that_will_be_gone_is_told_before_it_is(fin, clock):
    rows.june()
    budget(fin, "1540", thresholds=())  # 1,512 on 29 of 30 days: 1,564 are expected
    measure_budgets()
    watch_cost()
    assert standing() == [("BUDGET_FORECAST", "Budget/june")]
    assert (
        "will be gone" in alert_lines([], Actor(None, frozenset({"finance"})))[0].finding.sentence
    )


def test_an_alert_ends_with_its_cause_and_the_watch_of_machines_leaves_it_alone(fin, clock):
    rows.june()
    budget(fin, "1512")
    measure_budgets()
    assert watch_cost() == 1
    watch()
    assert watch_cost() == 0
    budget(fin, "5000")
    measure_budgets()
    assert watch_cost() == 1
    assert standing() == []
    assert Alert.objects.get(code="BUDGET_EXHAUSTED").cleared_at == LATE


def test_a_window_that_is_over_tells_nothing(fin, clock):
    rows.june()
    budget(fin, "1512")
    measure_budgets()
    watch_cost()
    clock.move_to(rows.JULY)
    watch_cost()
    assert standing() == []


def test_leads_read_the_alerts_of_their_team_and_nobody_elses(fin, lea, clock):
    teams = rows.june()
    budget(fin, "1512")
    save_budget(BudgetSpec("other", "team", "ia", "money", Decimal(1)), fin)
    measure_budgets()
    watch_cost()
    lead = Actor(lea, teams={teams["datos"].pk: "lead"})
    assert [line.finding.subject for line in alert_lines([], lead)] == ["Budget/june"]
    member = Actor(lea, teams={teams["datos"].pk: "member"})
    assert alert_lines([], member) == []


# ---- drift --------------------------------------------------------------------------------
def test_planes_that_differ_are_told_on_the_second_day_and_cleared_when_they_agree(clock):
    rows.june()
    source = rows.source("litellm_api", missing=range(1, 31))
    billing.rebuild_draft("2026-06", now=LATE)
    period = BillingPeriod.objects.get()
    period.capacity_cost += 1  # R4: the lines are not what it cost
    period.save()
    Source.objects.filter(pk=source.pk).update(enabled=False)
    watch_cost()
    assert standing() == []  # one bad day
    clock.shift(timedelta(days=1))
    watch_cost()
    assert ("COST_DRIFT_CRITICAL", "BillingPeriod/2026-06") in standing()
    period.capacity_cost -= 1
    period.save()
    watch_cost()
    assert ("COST_DRIFT_CRITICAL", "BillingPeriod/2026-06") not in standing()


def test_a_month_that_is_over_tells_at_once(clock):
    rows.june()
    clock.move_to(rows.JULY + timedelta(hours=1))
    billing.rebuild_draft("2026-06")
    BillingPeriod.objects.update(capacity_cost=1)
    watch_cost()
    assert ("COST_DRIFT_CRITICAL", "BillingPeriod/2026-06") in standing()


# ---- sources --------------------------------------------------------------------------------
def test_a_source_of_which_two_days_are_missing_is_dead_until_one_is_there(clock):
    source = rows.source("opencost", days=27)  # to 27 June; the 28th and 29th are over
    watch_cost()
    assert standing() == [("SOURCE_DEAD", "Source/opencost")]
    facts = Alert.objects.get().facts
    assert facts == {"source": "opencost", "days": 2, "since": "2026-06-27"}
    start = rows.JUNE + timedelta(days=28)
    more = {"starts_at": start, "ends_at": start + timedelta(days=1), "stored": "loaded"}
    Coverage.objects.create(source=source, day=start.date(), **more)
    watch_cost()
    assert standing() == []


def test_a_source_that_is_switched_off_is_not_missed(clock):
    rows.source("opencost", days=3, enabled=False)
    watch_cost()
    assert standing() == []


def test_days_that_wait_for_a_judgement_are_told(clock):
    source = rows.source("opencost", days=29)
    fetch = Fetch.objects.create(source=source, day=LATE.date(), outcome="quarantined")
    Coverage.objects.filter(day=(LATE - timedelta(days=1)).date()).update(quarantined=fetch)
    watch_cost()
    assert standing() == [("SOURCE_JUDGEMENT", "Source/opencost")]
    assert Budget.objects.count() == BudgetState.objects.count() == 0
