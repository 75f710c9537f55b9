"""From open to closed: who may take which step, what stands in the way, what closing leaves."""

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from finops import billing
from finops.closing.steps import acknowledge, put_forward_ended
from finops.models import BillingPeriod, Finding, Freeze, IssuedBill, PeriodStep
from finops.outdating import outdate_drafts
from finops.selectors.board import close_board
from finops.selectors.digests import digest_of
from finops.selectors.obstacles import obstacles
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected, Stale
from queues.access import Actor
from queues.models import Team
from tests.finops import rows

from .world import AFTER, JUNE, charged_june, close, codes, june, step

pytestmark = pytest.mark.django_db


def period(name=JUNE):
    return BillingPeriod.objects.get(name=name)


def finding(code="unallocated", severity="critical", subject="", **numbers):
    return Finding.objects.create(
        period=period(), code=code, severity=severity, subject=subject, numbers=numbers
    )


@pytest.fixture
def found(monkeypatch):
    """Let the month have findings that every rebuild finds again."""
    rest = billing._replace
    wanted = []

    def replace(period, facts):
        rest(period, facts)
        for one in wanted:
            finding(**one)

    monkeypatch.setattr(billing, "_replace", replace)
    return wanted


def test_a_month_is_put_forward_reviewed_and_closed_by_a_second_person(fin, ada):
    charged_june()
    states = []
    for name, actor in (("put_forward", fin), ("reviewed", fin), ("closed", ada)):
        states.append(step(name, actor).status)
    assert states == ["provisional", "reviewed", "closed"]
    taken = PeriodStep.objects.values_list("step", "by_name")
    assert list(taken) == [("put_forward", "fin"), ("reviewed", "fin"), ("closed", "ada")]
    audited = AuditEntry.objects.filter(subject=JUNE).order_by("id")
    assert [entry.action.partition(".")[2] for entry in audited] == [
        "put_forward",
        "reviewed",
        "closed",
    ]


def test_who_has_reviewed_cannot_close(fin, ada):
    june()
    step("put_forward", ada)
    step("reviewed", fin)
    with pytest.raises(Rejected) as refusal:
        step("closed", fin)
    assert codes(refusal) == ["SECOND_PERSON"]
    assert period().status == "reviewed"
    assert not IssuedBill.objects.exists()


def test_the_last_review_counts_when_a_month_went_back(fin, ada):
    june()
    step("put_forward", fin)
    step("reviewed", fin)
    step("sent_back", ada, "IA asks to wait for its late nodes")
    step("reviewed", ada)
    with pytest.raises(Rejected) as refusal:
        step("closed", ada)
    assert codes(refusal) == ["SECOND_PERSON"]
    assert step("closed", fin).status == "closed"


@pytest.mark.parametrize("name", ["reviewed", "closed"])
def test_the_system_puts_forward_but_never_reviews_or_closes(fin, name):
    june()
    assert put_forward_ended(AFTER) == [JUNE]
    assert put_forward_ended(AFTER) == []
    if name == "closed":
        step("reviewed", fin)
    with pytest.raises(Rejected) as refusal:
        step(name, None)
    assert codes(refusal) == ["SECOND_PERSON"]


@pytest.mark.parametrize(
    ("taken", "name", "code"),
    [
        ((), "reviewed", "PERIOD_STEP"),
        ((), "closed", "PERIOD_STEP"),
        ((), "sent_back", "PERIOD_STEP"),
        (("put_forward",), "put_forward", "PERIOD_STEP"),
        (("put_forward",), "closed", "PERIOD_STEP"),
        (("put_forward", "reviewed"), "reviewed", "PERIOD_STEP"),
        (("put_forward", "reviewed", "closed"), "sent_back", "PERIOD_CLOSED"),
        (("put_forward", "reviewed", "closed"), "put_forward", "PERIOD_CLOSED"),
        ((), "reopened", "BAD_VALUE"),
    ],
)
def test_no_step_leads_elsewhere(fin, ada, taken, name, code):
    june()
    for one in taken:
        step(one, ada if one == "closed" else fin)
    with pytest.raises(Rejected) as refusal:
        step(name, fin, "because")
    assert codes(refusal) == [code]


def test_a_month_that_goes_on_cannot_be_put_forward(fin):
    june()
    with pytest.raises(Rejected) as refusal:
        step("put_forward", fin, now=rows.JULY - timedelta(seconds=1))
    assert codes(refusal) == ["PERIOD_NOT_OVER"]
    assert put_forward_ended(rows.JULY + timedelta(hours=23)) == []


def test_going_back_needs_a_reason_and_a_month_needs_bills(fin):
    june()
    step("put_forward", fin)
    step("reviewed", fin)
    with pytest.raises(Rejected) as refusal:
        step("sent_back", fin, "  ")
    assert codes(refusal) == ["required"]
    with pytest.raises(Rejected) as refusal:
        step("put_forward", fin, month="2026-05")
    assert codes(refusal) == ["NO_BILLS"]


# ---- what was seen is what is closed -----------------------------------------------------------
def test_a_review_of_figures_that_have_changed_is_refused(fin):
    teams = june()
    step("put_forward", fin)
    seen = digest_of(period()).sha256
    rows.use(teams["ia"], 1, rows.JUNE, rows.JUNE + timedelta(hours=3))
    with pytest.raises(Stale) as refusal:
        step("reviewed", fin, seen=seen)
    assert codes(refusal) == ["FIGURES_CHANGED"]
    assert digest_of(period()).sha256 == seen, "a refused step changes nothing"
    assert step("reviewed", fin).status == "reviewed"


def test_a_reviewed_month_is_not_made_anew_and_not_closed_with_other_figures(fin, ada):
    teams = june()
    step("put_forward", fin)
    step("reviewed", fin)
    reviewed = digest_of(period()).sha256
    rows.use(teams["ia"], 1, rows.JUNE, rows.JUNE + timedelta(hours=3))
    assert billing.rebuild_months([JUNE], AFTER) == []
    assert digest_of(period()).sha256 == reviewed
    with pytest.raises(Stale) as refusal:
        step("closed", ada)
    assert codes(refusal) == ["FIGURES_CHANGED"]
    step("sent_back", ada, "three hours of IA came late")
    step("reviewed", fin)
    assert step("closed", ada).status == "closed"


def test_a_reviewed_month_that_something_changed_says_so_among_what_is_in_the_way(fin, ada):
    june()
    step("put_forward", fin)
    step("reviewed", fin)
    assert obstacles(period()) == []
    with time_machine.travel(AFTER):
        outdate_drafts(rows.JULY - timedelta(days=1), None)
    assert [one.code for one in obstacles(period())] == ["changed_since_review"]
    assert billing.rebuild_months([JUNE], AFTER) == [], "what was reviewed stays to be looked at"
    assert step("closed", ada).status == "closed", "the same lines came of it"


def test_whatever_was_seen_of_a_reviewed_month_goes_back(fin, ada):
    teams = june()
    step("put_forward", fin)
    step("reviewed", fin)
    seen = digest_of(period()).sha256
    rows.use(teams["ia"], 1, rows.JUNE, rows.JUNE + timedelta(hours=3))
    with pytest.raises(Stale) as refusal:
        step("closed", ada, seen=seen)
    assert "Send the month back" in refusal.value.problems[0].message
    assert step("sent_back", ada, "IA came late", seen=seen).status == "provisional"
    assert digest_of(period()).sha256 != seen, "its bills are made anew"
    assert obstacles(period()) == []


# ---- what stands in the way --------------------------------------------------------------------
def test_a_critical_finding_stands_in_the_way_until_it_is_acknowledged(fin, ada, found):
    june()
    found.append({"code": "unallocated", "amount": "900.00"})
    step("put_forward", fin)
    step("reviewed", fin)
    with pytest.raises(Rejected) as refusal:
        step("closed", ada)
    assert codes(refusal) == ["unallocated"]
    assert refusal.value.problems[0].path == "findings.unallocated"
    acknowledge(JUNE, "unallocated", "", fin, "the pilot of May, agreed with the head of IT")
    assert step("closed", ada).status == "closed"
    given = period().acknowledgements.get()
    assert (given.by_name, given.reason[:9]) == ("fin", "the pilot")
    assert AuditEntry.objects.get(action="billing_period.acknowledged").reason == given.reason


def test_the_board_of_a_closed_month_says_who_let_what_pass(fin, ada, found):
    june()
    found.append({"code": "unallocated", "amount": "900.00"})
    step("put_forward", fin)
    step("reviewed", fin)
    acknowledge(JUNE, "unallocated", "", fin, "the pilot of May, agreed with the head of IT")
    step("closed", ada)
    board = close_board(Actor(None, frozenset({"finance"})), JUNE)
    passed = [(one.code, one.acknowledgement.by_name, one.blocks) for one in board.obstacles]
    assert (passed, board.blocking) == ([("unallocated", "fin", False)], 0)
    assert "unallocated" not in {one.code for one in board.findings}


def test_an_acknowledgement_does_not_hold_for_other_numbers(fin, ada, found):
    june()
    found.append({"code": "unallocated", "amount": "900.00"})
    step("put_forward", fin)
    acknowledge(JUNE, "unallocated", "", fin, "known since May")
    found[0] = {"code": "unallocated", "amount": "1900.00"}
    step("reviewed", fin)
    with pytest.raises(Rejected) as refusal:
        step("closed", ada)
    assert codes(refusal) == ["unallocated"]


@pytest.mark.parametrize(
    ("one", "blocks"),
    [
        ({"code": "unmapped_model", "severity": "warning", "amount": "12.50"}, True),
        ({"code": "unmapped_model", "severity": "warning", "amount": "0.000000"}, False),
        ({"code": "spend_mismatch", "severity": "warning", "spend": "12.50"}, False),
        ({"code": "drift", "severity": "critical", "drift": "-0.9"}, True),
        ({"code": "drift", "severity": "info", "drift": "-0.9"}, False),
    ],
)
def test_critical_findings_and_models_with_spend_block(fin, ada, found, one, blocks):
    june()
    found.append({"subject": "model_group=m", **one})
    step("put_forward", fin)
    step("reviewed", fin)
    if not blocks:
        assert step("closed", ada).status == "closed"
        return
    with pytest.raises(Rejected) as refusal:
        step("closed", ada)
    assert codes(refusal) == [one["code"]]


def test_a_charged_team_needs_a_cost_centre_and_nobody_can_let_that_pass(fin, ada):
    june(datos="")
    step("put_forward", fin)
    step("reviewed", fin)
    with pytest.raises(Rejected) as refusal:
        step("closed", ada)
    assert codes(refusal) == ["no_cost_center"]
    with pytest.raises(Rejected) as refusal:
        acknowledge(JUNE, "no_cost_center", "team=datos", fin, "later")
    assert codes(refusal) == ["NOT_TO_BE_HELPED"]
    Team.objects.filter(name="datos").update(cost_center="1001")
    assert step("closed", ada).status == "closed"


def test_only_what_stands_in_the_way_can_be_acknowledged_and_with_a_reason(fin, found):
    june()
    found.append({"code": "unallocated"})
    step("put_forward", fin)
    for code, reason, wanted in (
        ("drift", "x", "NOT_IN_THE_WAY"),
        ("unallocated", " ", "required"),
    ):
        with pytest.raises(Rejected) as refusal:
            acknowledge(JUNE, code, "", fin, reason)
        assert codes(refusal) == [wanted]


# ---- what closing leaves -----------------------------------------------------------------------
def test_charged_teams_get_numbers_and_postings_and_the_rest_is_retained(fin, ada):
    charged_june()
    close(fin, ada)
    issued = IssuedBill.objects.order_by("pk")
    found = {(one.bill.team.name if one.bill.team else "central"): one for one in issued}
    assert {name: one.number for name, one in found.items()} == {
        "datos": "GPU-2026-000001",
        "ia": "GPU-2026-000002",
        "plataforma": None,
        "central": None,
    }
    datos = found["datos"]
    assert (datos.debit, datos.credit, datos.amount) == ("1001", "platform", Decimal("1512.00"))
    assert found["plataforma"].mode == "showback"
    charged = sum(one.amount for one in issued if one.number)
    retained = sum(one.amount for one in issued if not one.number)
    assert charged + retained == period().capacity_cost == Decimal("4032.00")


def test_closing_twice_is_closing_once(fin, ada):
    charged_june()
    close(fin, ada)
    before = list(IssuedBill.objects.values()), list(PeriodStep.objects.values())
    assert step("closed", fin).status == "closed"
    assert (list(IssuedBill.objects.values()), list(PeriodStep.objects.values())) == before


def test_what_the_month_rests_on_is_frozen_with_its_hashes(fin, ada):
    charged_june()
    close(fin, ada)
    freeze = Freeze.objects.get()
    digest = digest_of(period(), freeze.columns)
    assert freeze.lines_sha256 == digest.sha256
    assert PeriodStep.objects.get(step="closed").digest == digest.sha256
    rules = freeze.facts["rules"]
    assert rules["policy"]["idle"] == "separate"
    assert [price["gpu_hour"] for price in rules["prices"]] == ["7/5"]
    assert freeze.facts["rows"]["usage"]["rows"] == 3
    datos = IssuedBill.objects.get(bill__team__name="datos")
    assert datos.sha256 == digest.by_bill[datos.bill_id]


def test_names_and_cost_centres_stay_those_of_the_closing(fin, ada):
    charged_june()
    close(fin, ada)
    Team.objects.filter(name="datos").update(
        display_name="Data", cost_center="9", accounting_mode="showback"
    )
    issued = IssuedBill.objects.get(bill__team__name="datos")
    assert (issued.team_name, issued.cost_center, issued.mode) == ("Datos", "1001", "chargeback")
