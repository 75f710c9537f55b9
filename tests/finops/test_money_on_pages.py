"""What pages say of prices, promises, loans and months to come can be worked out again."""

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
import time_machine

from finops import billing, version
from finops.closing.adjusting import AdjustmentSpec, adjust
from finops.finding_words import finding_sentence, subject_words
from finops.models import Bill, BillLine, Finding, Price
from finops.selectors.forecasts import days_of_accounts
from finops.selectors.groups import CostQuery, cost_by_group
from queues.access import Actor
from queues.models import Cohort
from scheduling.models import CapacityInterval, QuotaInterval, UsageInterval

from . import rows

pytestmark = pytest.mark.django_db
AFTER = rows.JULY + timedelta(days=1)
TIMES = "\N{MULTIPLICATION SIGN}"
ALL = Actor(None, frozenset({"finance"}))


@pytest.fixture
def june():
    teams = rows.june()
    rows.flavor()
    return teams


def rebuilt(now=AFTER):
    return billing.rebuild_draft("2026-06", now=now)


def text_of(response):
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


# ---- prices -------------------------------------------------------------------------------------
def test_hours_before_the_first_node_are_no_second_price(june, fin, signed_in):
    """The pool, its quotas and its price begin in the morning of the first day."""
    began = rows.JUNE + timedelta(hours=8)
    for kind in (CapacityInterval, QuotaInterval):
        kind.objects.update(started_at=began)
    UsageInterval.objects.filter(started_at__lt=began).update(started_at=began)
    Price.objects.update(valid_from=began, created_at=began)
    rebuilt()
    idle = BillLine.objects.get(kind="idle")
    assert idle.unit_price == Decimal("1.40")
    assert round(idle.quantity * idle.unit_price, 2) == idle.amount
    assert f"GPU-h {TIMES} 1.40" in text_of(signed_in(fin).get("/bills/2026-06/__central__/"))
    words = text_of(signed_in(fin).get("/bills/2026-06/datos/"))
    assert f"2 GPU {TIMES} 712.00 h {TIMES} 1.40, 1 Jun 08:00 to 1 Jul 00:00 UTC" in words
    assert "1,993.60" in words  # 2 x 712 h x 1.40


def test_several_prices_and_none_are_told_apart(june, fin, signed_in):
    middle = rows.JUNE + timedelta(days=15)
    Price.objects.update(valid_to=middle, created_at=rows.JUNE)
    rows.price("2.00", valid_from=middle)
    rebuilt()
    assert "several prices were in force" in text_of(
        signed_in(fin).get("/bills/2026-06/__central__/")
    )


# ---- lenders ------------------------------------------------------------------------------------
def test_a_bill_names_the_cohort_that_lent_as_the_ledger_does(june, lea, signed_in):
    """Queues promise 4 of the 6 GPUs that run; metering wrote down that the cohort lent two."""
    Cohort.objects.get_or_create(name="company")
    start = rows.JUNE + timedelta(days=20)
    QuotaInterval.objects.exclude(cluster_queue="cq-datos").update(lending_limit=0)
    CapacityInterval.objects.update(amount=8)
    rows.use(june["datos"], 4, start, start + timedelta(hours=10))
    UsageInterval.objects.filter(holding="borrowed").update(lender="company")
    rebuilt()
    lines = BillLine.objects.filter(bill__team=june["datos"], kind="gpu_borrowed")
    assert {line.lender for line in lines} == {"company"}
    assert "lender company" in text_of(signed_in(lea).get("/bills/2026-06/datos/"))


# ---- a month that is over, one that goes on -----------------------------------------------------
def test_a_month_that_is_over_speaks_of_its_end_and_not_of_now(june, fin, signed_in):
    UsageInterval.objects.filter(workload__team=june["datos"]).update(ended_at=None)
    rebuilt()
    browser = signed_in(fin)
    assert "At the end of the month it held 2 borrowed GPUs." in text_of(
        browser.get("/bills/2026-06/summary/")
    )
    rows_of = browser.get("/bills/2026-06/summary/?format=json").json()
    assert {row["forward_cost"] for row in rows_of["rows"] if row["team"] == "datos"} == {None}
    with time_machine.travel(rows.JUNE + timedelta(days=10), tick=False):
        rebuilt(now=rows.JUNE + timedelta(days=10))
        assert "2 borrowed GPUs are still held" in text_of(browser.get("/bills/2026-06/summary/"))


def test_a_running_bill_says_what_the_month_will_come_to_by_the_rule_of_budgets(
    june, lea, signed_in
):
    UsageInterval.objects.filter(workload__team=june["datos"]).update(ended_at=None)
    with time_machine.travel(rows.JUNE + timedelta(days=10), tick=False):
        rebuilt(now=rows.JUNE + timedelta(days=10))
        browser = signed_in(lea)
        answer = browser.get("/bills/2026-06/datos/?format=json").json()
        assert Decimal(answer["total"]) == Decimal("1344.00")  # 4 x 240 h x 1.40
        assert answer["month_end"] == {
            "expected": "4032.00",  # three times as many days
            "low": "4032.00",
            "high": "4032.00",
            "assumption": "pace",
        }
        said = "About €4,032.00, if the days to come cost what those so far did"
        assert said in text_of(browser.get("/bills/2026-06/datos/"))
        page = text_of(browser.get("/cost/"))
        assert "come to about €4,032.00" in page
        assert browser.get("/cost/?format=json").json()[0]["expected"] == "4032.00"
    with time_machine.travel(AFTER, tick=False):
        rebuilt()
        assert signed_in(lea).get("/bills/2026-06/datos/?format=json").json()["month_end"] is None


def test_an_adjustment_comes_once_in_a_forecast_and_makes_no_day_unusual(june, fin, signed_in):
    UsageInterval.objects.filter(workload__team=june["datos"]).update(ended_at=None)
    with time_machine.travel(rows.JUNE + timedelta(days=10), tick=False):
        rebuilt(now=rows.JUNE + timedelta(days=10))
        before = days_of_accounts()
        adjust("2026-06", AdjustmentSpec("datos", Decimal(-500), "a node was down in May"), fin)
        answer = signed_in(fin).get("/bills/2026-06/datos/?format=json").json()
        assert Decimal(answer["total"]) == Decimal("844.00")
        assert answer["month_end"]["expected"] == "3532.00"  # 4032 and the 500, once
        assert (answer["month_end"]["low"], answer["month_end"]["high"]) == ("3532.00", "3532.00")
        assert days_of_accounts() == before


def test_yesterday_costs_tomorrow_what_it_cost_today(june):
    """Cents of a line fall on its days in their order: a later day moves no earlier one."""
    Price.objects.update(amount=Decimal("1.41111111"))
    seen = {}
    for days in range(2, 12):
        now = rows.JUNE + timedelta(days=days)
        rebuilt(now=now)
        by_day = Bill.objects.get(team=june["datos"]).by_day
        for day in sorted(by_day)[:-1]:
            assert seen.setdefault(day, by_day[day]) == by_day[day]


# ---- cost by groups -----------------------------------------------------------------------------
@pytest.mark.parametrize("idle", ["separate", "proportional", "owner", "owner_net"])
def test_used_and_idle_hours_of_the_groups_add_up_to_the_capacity(june, idle):
    with time_machine.travel(AFTER, tick=False):
        found = cost_by_group(ALL, CostQuery(window="lastmonth", idle=idle), AFTER)
    groups = [*found.found.groups, found.found.remainder]
    assert sum(group.gpu_hours for group in groups) == found.found.gpu_hours == 1764
    assert sum(group.idle_gpu_hours for group in groups) == found.found.idle_gpu_hours == 1116
    assert found.labels["datos"] == "Datos"


def test_the_page_of_groups_names_teams_and_totals_hours(june, fin, signed_in):
    with time_machine.travel(AFTER, tick=False):
        words = text_of(signed_in(fin).get("/cost/by/?window=2026-06&group=team"))
    assert "Datos 1,080.0 0.0" in words
    assert "idle 0.0 1,116.0" in words
    assert "Total 1,764.0 1,116.0" in words


# ---- findings, version --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("code", "numbers", "words"),
    [
        (
            "drift",
            {"token_cost": "296.400000", "iron": "1512.000000"},
            "Tokens were priced at €296.40; their iron costs €1,512.00.",
        ),
        ("unallocated", {"amount": "7.420000"}, "Use worth €7.42 has no owner."),
        (
            "overcommitted",
            {"gpu_hours": "12969.192686"},
            "Quotas promise 12,969.2 GPU-hours more than were there.",
        ),
        (
            "no_price",
            {"rows": "1200", "tokens": "3090000"},
            "1,200 requests with 3,090,000 tokens have no cost and no price.",
        ),
    ],
)
def test_a_finding_says_money_hours_and_counts_as_people_read_them(code, numbers, words):
    assert finding_sentence(code, numbers, "EUR") == words
    assert Finding(code=code, numbers=numbers).numbers == numbers  # files keep every decimal


def test_a_finding_is_about_something_in_words():
    assert subject_words("model_group=llama 70b team=ia") == "model llama 70b, team ia"
    assert subject_words("flavor= source=capacity") == "source capacity"
    assert subject_words("gateway 2026-06-09 team-datos") == "gateway 2026-06-09 team-datos"
    assert subject_words("flavor= source=capacity") == "source capacity"


def test_the_version_is_that_of_the_folder_where_nothing_is_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(version, "PACKAGE", "a-package-that-nobody-has")
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", version.code_version())
    monkeypatch.setattr(version, "PROJECT", tmp_path / "pyproject.toml")
    assert version.code_version() == "unknown"
