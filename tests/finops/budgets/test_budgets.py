"""Budgets measured on our ledger, and what they do to work."""

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from finops.budgets import measuring
from finops.budgets.check import BudgetCheck
from finops.budgets.measuring import measure_budgets
from finops.budgets.saving import BudgetSpec, delete_budget, save_budget
from finops.models import Budget, BudgetState
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected, Stale
from scheduling.models import AdmissionCheck, Workload
from tests.finops import rows

pytestmark = pytest.mark.django_db
LATE = rows.JULY - timedelta(minutes=1)


@pytest.fixture(autouse=True)
def late_in_june():
    with time_machine.travel(LATE, tick=False):
        yield


def spec(name="june", **more):
    plain = {"scope": "team", "subject": "datos", "measure": "money", "limit": Decimal(2000)}
    return BudgetSpec(**{"name": name, **plain, **more})


def spent():
    return {state.budget.name: state.spent for state in BudgetState.objects.all()}


def test_money_hours_and_windows_are_those_of_the_ledger(fin):
    rows.june()
    save_budget(spec("money"), fin)
    save_budget(spec("hours", measure="gpu_hours", limit=Decimal(1000)), fin)
    save_budget(spec("week", duration="7d", subject="ia"), fin)
    assert len(measure_budgets()) == 3
    # The last week of June begins on Monday 29; IA's work has 30 hours left in it.
    assert spent() == {"money": 1512, "hours": 1080, "week": 42}
    assert BudgetState.objects.get(budget__name="hours").level == 100
    assert BudgetState.objects.get(budget__name="week").starts_at == rows.JULY - timedelta(days=2)


def test_a_budget_of_hours_is_forecast_by_weekdays_within_a_band(fin, monkeypatch):
    """Five weeks of 24 hours on each day from Monday to Thursday, and none from Friday on."""
    seen = []
    real = measuring.forecast
    monkeypatch.setattr(measuring, "forecast", lambda *one: seen.append(one[3]) or real(*one))
    team = rows.make_team("datos")
    rows.price("1.40", valid_from=rows.JUNE - timedelta(days=90))
    monday = rows.JUNE - timedelta(weeks=2)
    with time_machine.travel(rows.JUNE + timedelta(days=19, hours=12), tick=False):  # Saturday
        for week in range(5):
            start = monday + timedelta(weeks=week)
            rows.use(team, 1, start, start + timedelta(days=4))
        save_budget(spec(measure="gpu_hours", limit=Decimal(1000)), fin)
    (days,) = seen
    assert (len(days), sum(days.values())) == (33, 5 * 96)
    assert {day.weekday() for day, hours in days.items() if hours == 24} == {0, 1, 2, 3}
    state = BudgetState.objects.get()
    # 12 days in June until now; six of those to come are from Monday to Thursday.
    assert (state.spent, state.expected) == (288, 288 + 6 * 24)
    assert state.low < state.expected < state.high


def test_measuring_twice_is_measuring_once(fin):
    rows.june()
    save_budget(spec(), fin)
    measure_budgets()
    before = BudgetState.objects.values().get()
    measure_budgets()
    assert BudgetState.objects.values().get() == before


@pytest.mark.parametrize(
    ("limit", "is_hard", "verdict"),
    [("1512", True, "retry"), ("1512.01", True, "ready"), ("1", False, "ready")],
)
def test_work_of_a_team_whose_hard_budget_is_gone_does_not_start(fin, limit, is_hard, verdict):
    teams = rows.june()
    save_budget(spec(limit=Decimal(limit), is_hard=is_hard), fin)
    measure_budgets()
    datos, ia = (Workload.objects.filter(team=teams[name]).first() for name in ("datos", "ia"))
    check = AdmissionCheck(name="money", kind="budget", queues=["*"])
    said = BudgetCheck().opinions(check, [datos, ia], LATE)
    assert said[datos.pk].state.value.lower() == verdict
    assert said[ia.pk].state.value.lower() == "ready"
    if verdict == "retry":
        assert said[datos.pk].message == (
            "Budget june is gone: 1512 of 1512 EUR. It is tried again when the next window "
            "begins, at 2026-07-01 00:00 UTC, or as soon as the budget is raised."
        )
        assert said[datos.pk].retry_after_s == (rows.JULY - LATE).total_seconds()
    again = BudgetCheck().opinions(check, [datos], rows.JULY)
    assert again[datos.pk].state.value.lower() == "ready", "a new window begins with nothing"


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"name": "Big Budget"}, "name"),
        ({"scope": "queue"}, "scope"),
        ({"subject": "nobody"}, "subject"),
        ({"measure": "cores"}, "measure"),
        ({"scope": "model", "measure": "gpu_hours"}, "measure"),
        ({"scope": "tag", "is_hard": True}, "is_hard"),
        ({"limit": Decimal(-1)}, "limit"),
        ({"limit": Decimal("NaN")}, "limit"),
        ({"limit": Decimal("0.0000001")}, "limit"),
        ({"duration": "2mo"}, "duration"),
        ({"thresholds": (0, 50)}, "thresholds"),
    ],
)
def test_what_a_budget_may_not_be(fin, wrong, path):
    rows.make_team("datos")
    with pytest.raises(Rejected) as refusal:
        save_budget(spec(**wrong), fin)
    assert [problem.path for problem in refusal.value.problems] == [path]
    assert not Budget.objects.exists()


def test_an_edit_is_audited_and_a_stale_one_refused(fin):
    rows.make_team("datos")
    save_budget(spec(), fin)
    row = save_budget(spec(limit=Decimal(3000)), fin, "more nodes", version=1)
    assert row.version == 2
    assert save_budget(spec(limit=Decimal(3000)), fin).version == 2, "nothing changed"
    with pytest.raises(Rejected):
        save_budget(spec(limit=Decimal(1)), fin, version=1)
    with pytest.raises(Rejected) as taken:
        save_budget(spec(limit=Decimal(1)), fin, version=0)
    assert [problem.code for problem in taken.value.problems] == ["name_taken"]
    with pytest.raises(Stale):
        save_budget(spec("nowhere"), fin, version=3)
    with pytest.raises(Stale):
        delete_budget("june", fin, version=1)
    assert delete_budget("june", fin, "closed down", version=2)
    assert not delete_budget("june", fin)
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["budget.created", "budget.updated", "budget.deleted"]
