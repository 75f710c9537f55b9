"""What pages of money say: who owes, what is so far, what there is nothing of."""

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
import time_machine

from finops import billing, charts
from finops.loader import load_facts
from finops.models import Bill, BillingPeriod, BillLine
from finops.selectors import bills
from finops.selectors.prices import loan_sums, open_loans
from queues.access import Actor
from scheduling.models import CapacityInterval, UsageInterval, Workload

from . import rows

pytestmark = pytest.mark.django_db
AFTER = rows.JULY + timedelta(days=1)
MONTH = "/bills/2026-06/"
OWN = "/bills/2026-06/datos/"


@pytest.fixture
def june():
    teams = rows.june()
    rows.flavor()
    billing.rebuild_draft("2026-06", now=AFTER)
    return teams


@pytest.fixture
def fin_sees(fin):
    return Actor(fin, frozenset({"finance"}), {}, None, None)


def text_of(response):
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


# ---- who owes ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "case",
    [
        ("showback", "separate", "Datos used GPUs worth €1,512.00 in June 2026"),
        (
            "showback",
            "proportional",
            (
                "Datos used GPUs worth €1,512.00 in June 2026; with €956.57 for idle GPUs that "
                "is €2,468.57"
            ),
        ),
        ("chargeback", "separate", "Datos owes €1,512.00 for June 2026"),
        (
            "chargeback",
            "proportional",
            "Datos owes €2,468.57 for June 2026, of which €956.57 is for idle GPUs",
        ),
    ],
)
def test_only_a_team_that_is_charged_owes(june, lea, signed_in, case):
    mode, policy, sentence = case
    june["datos"].accounting_mode = mode
    june["datos"].save()
    billing.choose_idle_policy("2026-06", policy, None)
    words = text_of(signed_in(lea).get(OWN))
    assert sentence in words
    assert ("owes" in words) is (mode == "chargeback")
    assert "iron" not in words.replace("environment", "")


def test_a_month_that_goes_on_says_so_far(june, fin, signed_in):
    with time_machine.travel(rows.JUNE + timedelta(hours=400), tick=False):
        billing.rebuild_draft("2026-06")
        browser = signed_in(fin)
        assert "June 2026 has cost €2,240.00 so far" in text_of(browser.get(MONTH))
        assert "worth €1,512.00 in June 2026 so far" in text_of(browser.get(OWN))
        assert "so far" in text_of(browser.get("/bills/"))


# ---- months ------------------------------------------------------------------------------------
@pytest.mark.parametrize(("who", "status"), [("fin", 200), ("lea", 200), ("eve", 404)])
def test_a_month_without_metering_says_so(june, cast, signed_in, who, status):
    answer = signed_in(getattr(cast, who)).get("/bills/2026-05/")
    assert answer.status_code == status
    if status == 200:
        assert "Nothing was metered in May 2026" in text_of(answer)


def test_a_month_whose_bills_come_later_says_that(june, fin, signed_in):
    with time_machine.travel(AFTER, tick=False):
        assert "The bills of July 2026 are not made yet" in text_of(
            signed_in(fin).get("/bills/2026-07/")
        )
    assert not BillingPeriod.objects.filter(name="2026-07").exists()


def test_files_of_a_month_without_bills_are_empty_and_nothing_is_chosen_in_it(
    june, fin, signed_in
):
    browser = signed_in(fin)
    answer = browser.get("/bills/2026-05/?format=json").json()
    assert (answer["bills"], answer["total"], answer["status"]) == ([], "0.00", "none")
    assert browser.get("/bills/2026-05/?format=csv").content.count(b"\r\n") == 1
    wanted = {"idle_policy": "even", "reason": "x, and why so", "seen": 1}
    assert browser.post("/bills/2026-05/", wanted).status_code == 404
    assert BillingPeriod.objects.count() == 1


@pytest.mark.parametrize("policy", ["separate", "proportional", "even", "owner", "owner_net"])
def test_gpu_hours_of_the_month_add_up_to_those_of_the_capacity(june, fin_sees, policy):
    billing.choose_idle_policy("2026-06", policy, None)
    view = bills.bill_month(fin_sees, "2026-06")
    hours = view.figures.gpu_hours + view.figures.idle_gpu_hours
    assert round(hours, 3) == view.period.capacity_gpu_hours  # a share has six decimals
    assert view.figures.gpu_hours == Decimal(1764)


def test_the_central_account_is_named_in_the_answer_as_in_the_file(june, fin, signed_in):
    browser = signed_in(fin)
    month = browser.get(f"{MONTH}?format=json").json()["bills"][-1]
    bill = browser.get(f"{MONTH}__central__/?format=json").json()
    for answer in (month, bill):
        assert (answer["team"], answer["team_name"]) == ("__central__", "central account")
    names = {
        re.search(
            'filename="([^"]+)"', browser.get(f"{MONTH}?format=csv{more}")["Content-Disposition"]
        )[1]
        for more in ("", "&profile=excel-es", "&profile=excel-de")
    }
    assert len(names) == 3


# ---- idle over the whole cluster ---------------------------------------------------------------
def test_shared_idle_is_shared_over_the_cluster_and_shown_idle_by_flavor(june):
    CapacityInterval.objects.create(
        node="a100-node-01",
        flavor="a100",
        resource=rows.GPU,
        amount=1,
        started_at=rows.JUNE,
    )
    rows.price("1.00", subject="a100", valid_from=rows.JUNE)
    billing.choose_idle_policy("2026-06", "proportional", None)
    shares = BillLine.objects.filter(kind="idle_share")
    assert {line.flavor for line in shares} == {""}
    assert sum(line.amount for line in shares) == Decimal("1562.40") + 720
    for bill in Bill.objects.all():
        by_day = [Decimal(part) for day in bill.by_day.values() for part in day.values()]
        assert sum(by_day) == bill.total
    billing.choose_idle_policy("2026-06", "separate", None)
    idle = BillLine.objects.filter(kind="idle").order_by("flavor")
    assert [(line.flavor, line.amount) for line in idle] == [
        ("a100", Decimal(720)),
        (rows.FLAVOR, Decimal("1562.40")),
    ]


def test_owner_policies_and_rows_of_their_own_go_by_flavor(june):
    assert pools("even") == pools("proportional") == "cluster"
    assert pools("owner") == pools("hidden") == "flavor"


def pools(idle):
    return load_facts(BillingPeriod.objects.get(), rows.JULY).under(idle).policy.idle_scope


def test_the_formula_of_a_share_counts_the_whole_cluster(june, lea, signed_in):
    CapacityInterval.objects.create(
        node="a100-node-01",
        flavor="a100",
        resource=rows.GPU,
        amount=1,
        started_at=rows.JUNE,
    )
    rows.price("1.00", subject="a100", valid_from=rows.JUNE)
    billing.choose_idle_policy("2026-06", "proportional", None)
    words = text_of(signed_in(lea).get(OWN))
    assert "2,282.40 \N{MULTIPLICATION SIGN} 1,512.00 ÷ 2,469.60" in words


# ---- loans -------------------------------------------------------------------------------------
def test_a_loan_with_a_declared_end_costs_until_then_and_no_longer(june, fin_sees):
    now = rows.JUNE + timedelta(hours=100)
    UsageInterval.objects.filter(holding="borrowed").update(ended_at=None)
    Workload.objects.update(expected_duration_s=110 * 3600, started_at=rows.JUNE)
    loans = open_loans(fin_sees, now)
    assert [(loan.per_hour, loan.until_end, loan.next_month) for loan in loans] == [
        (Decimal("1.40"), Decimal("14.00"), Decimal("0.00"))
    ] * 2
    sums = loan_sums(loans)
    assert (sums.per_hour, sums.until_end, sums.next_month) == (Decimal("2.80"), 28, 0)
    assert (sums.count, sums.ending, sums.staying) == (1, 1, 0)  # of one queue, two lenders


def test_a_loan_that_ends_within_next_month_counts_up_to_its_end(june, fin_sees):
    UsageInterval.objects.filter(holding="borrowed").update(ended_at=None)
    Workload.objects.update(expected_duration_s=730 * 3600, started_at=rows.JUNE)
    loan = open_loans(fin_sees, rows.JUNE + timedelta(hours=100))[0]
    assert loan.next_month == Decimal("14.00")  # June has 720 h
    overdue = open_loans(fin_sees, rows.JULY + timedelta(hours=100))[0]
    assert (overdue.until_end, overdue.next_month) == (0, 0)


# ---- figures -----------------------------------------------------------------------------------
def test_days_are_names_on_the_axis_and_an_empty_figure_says_so(june, fin_sees):
    view = bills.team_bill(fin_sees, "2026-06", "datos")
    full = charts.bill_by_day("light", view)
    assert full["layout"]["xaxis"]["type"] == "category"
    assert "annotations" not in full["layout"]
    Bill.objects.update(by_day={})
    empty = charts.bill_by_day("light", bills.team_bill(fin_sees, "2026-06", "datos"))
    assert empty["layout"]["annotations"][0]["text"] == "nothing yet"


# ---- calculator --------------------------------------------------------------------------------
def test_the_calculator_compares_with_the_price_nearest_to_its_own(june, fin, signed_in):
    rows.flavor("a100")
    rows.price("1.10", subject="a100", valid_from=rows.JUNE)
    page = signed_in(fin).get("/prices/calculator/").content.decode()
    assert f'<option value="{rows.FLAVOR}" selected>' in page
    assert "the price in force is 1.40" in page
