"""The cost of any window by anything: one total, nobody else's money, the figures of the bill."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
import time_machine

from finops import billing
from finops.allocation.grouping import DIMENSIONS
from finops.mapping_services import set_mapping
from finops.models import Adjustment, Bill, BillingPeriod
from finops.selectors.groups import CostQuery, cost_by_group
from finops.spans import BadSpanError, span_of
from finops.specs import MappingSpec
from gpuplatform.common.problems import Rejected
from queues.access import Actor
from scheduling.models import Workload

from . import rows

pytestmark = pytest.mark.django_db
AFTER = rows.JULY + timedelta(days=1)
ALL = Actor(None, frozenset({"finance"}))
KEYS = {"label": "project", "annotation": "note"}


@pytest.fixture
def june():
    """The articles' month with storage, an external model, and one of our own on ia's iron."""
    with time_machine.travel(AFTER, tick=False):
        teams = rows.june()
        for number, workload in enumerate(Workload.objects.order_by("name")):
            workload.labels = {"project": f"p{number % 2}"} if number else {}
            workload.save()
        opencost, gateway = rows.source("opencost"), rows.source("litellm_api")
        controller = {"controller_kind": "job", "controller": "c", "labels": {"project": "p1"}}
        rows.cost(opencost, 3, "ns-ia", pv_cost="4.01", network_cost="1.00", **controller)
        rows.cost(opencost, 3, "__unmounted__", pv_cost="14.40")
        rows.tokens(gateway, "t-ia", "gpt", 1000, "12.34", tags=["a", "b"], key_alias="k1")
        rows.tokens(gateway, "t-d", "gpt", 1000, "0.66", tags=["a"], key_alias="k2")
        rows.tokens(gateway, "t-d", "llama", 3000, "0.30", tags=[], key_alias="k2")
        rows.tokens(gateway, "t-ia", "llama", 1000, "0.10", tags=["a", "b"], key_alias="k1")
        for spec in (
            MappingSpec("namespace", "ns-ia", "ia"),
            MappingSpec("litellm_team", "t-ia", "ia"),
            MappingSpec("litellm_team", "t-d", "datos"),
            MappingSpec("deployment", "gpt", namespace="out"),
            MappingSpec("mode", "out", mode="external"),
            MappingSpec("deployment", "llama", namespace="ns"),
        ):
            set_mapping(spec, None)
        yield teams


def asked(actor=ALL, **query):
    return cost_by_group(actor, CostQuery(**{"window": "lastmonth"} | query), AFTER)


def amounts(view):
    return {group.name: group.amount for group in view.found.groups}


@pytest.mark.parametrize("idle", ["separate", "proportional", "owner_net"])
def test_every_grouping_adds_up_to_the_same_total_which_is_the_bills(june, idle):
    billing.rebuild_draft("2026-06", now=AFTER)
    billing.choose_idle_policy("2026-06", idle, None)
    total = BillingPeriod.objects.get().total_cost
    assert total == Decimal("4064.41")
    for by in DIMENSIONS:
        found = asked(group=by, key=KEYS.get(by, "")).found
        shown = sum((group.amount for group in found.groups), found.remainder.amount)
        assert (by, shown + found.overlap.amount) == (by, found.total)
        assert found.total == total


def adjusted(team, amount, day):
    period = BillingPeriod.objects.get(name="2026-06")
    return Adjustment.objects.create(
        period=period,
        kind="manual",
        team=team,
        amount=Decimal(amount),
        currency="EUR",
        reason="a credit, and why so",
        at=rows.JUNE + timedelta(days=day),
    )


@pytest.mark.parametrize("by", DIMENSIONS)
def test_adjustments_are_in_the_total_of_every_grouping(june, by):
    billing.rebuild_draft("2026-06", now=AFTER)
    adjusted(june["ia"], "-20.00", 3)
    adjusted(None, "7.50", 40)  # made in July, while the month was open
    billing.rebuild_draft("2026-06", now=AFTER)
    period = BillingPeriod.objects.get()
    found = asked(group=by, key=KEYS.get(by, "")).found
    shown = sum((group.amount for group in found.groups), found.remainder.amount)
    assert shown + found.overlap.amount == found.total == Decimal("4064.41") + Decimal("-12.50")
    assert (found.total, period.adjustment_cost) == (period.total_cost, Decimal("-12.50"))
    if by == "type":
        assert amounts(asked(group=by))["adjustment"] == Decimal("-12.50")


def test_an_adjustment_falls_on_the_day_it_was_made_or_the_last_of_its_month(june):
    billing.rebuild_draft("2026-06", now=AFTER)
    adjusted(june["ia"], "-20.00", 3)
    adjusted(june["ia"], "5.00", 40)
    for first, amount in ((2, 0), (3, -20), (4, 0), (28, 0), (29, 5)):
        start = rows.JUNE + timedelta(days=first)
        end = start + timedelta(days=1)
        window = f"{start:%Y-%m-%dT%H:%M:%SZ},{end:%Y-%m-%dT%H:%M:%SZ}"
        found = asked(window=window, group="type", kept={"type": "adjustment"}).found
        assert (first, found.total) == (first, amount)


def test_a_month_by_team_is_the_bill(june):
    billing.rebuild_draft("2026-06", now=AFTER)
    found = amounts(asked(group="team"))
    for bill in Bill.objects.exclude(team=None):
        assert found[bill.team.name] == bill.total


def test_a_lead_sees_the_own_teams_and_a_filter_changes_nobodys_money(june, lea):
    lead = Actor(lea, teams={june["datos"].pk: "lead"})
    whole = amounts(asked(group="team"))
    assert amounts(asked(lead, group="team")) == {"datos": whole["datos"]}
    assert amounts(asked(group="team", kept={"team": "datos"})) == {"datos": whole["datos"]}
    own = asked(lead, group="model").found
    assert {group.name: group.tokens for group in own.groups} == {"llama": 3000, "gpt": 1000}


def test_tags_overlap_and_what_they_count_twice_is_taken_off(june):
    found = asked(group="tag", kept={"type": "tokens_external"}).found
    assert {group.name: group.amount for group in found.groups} == {
        "a": Decimal("13.00"),
        "b": Decimal("12.34"),
    }
    assert (found.overlap.amount, found.total) == (Decimal("-12.34"), Decimal("13.00"))
    assert found.overlap.tokens == -2000  # of two rows with two tags


@pytest.mark.parametrize("by", DIMENSIONS)
def test_hours_and_tokens_add_up_as_the_money_does(june, by):
    billing.rebuild_draft("2026-06", now=AFTER)
    found = asked(group=by, key=KEYS.get(by, "")).found
    shown = [*found.groups, found.remainder, found.overlap]
    assert sum(group.gpu_hours for group in shown) == found.gpu_hours
    assert sum(group.idle_gpu_hours for group in shown) == found.idle_gpu_hours
    if by in {"model", "key", "tag"}:
        assert sum(group.tokens for group in shown) == 6000


def test_a_model_of_ours_shows_the_iron_that_serves_it_and_its_tokens_as_a_memo(june):
    found = {group.name: group for group in asked(group="model").found.groups}
    # All work of the month runs in the namespace that serves llama: it is the only model there.
    assert found["llama"].amount == Decimal("2469.60")
    assert (found["llama"].tokens, found["llama"].token_cost) == (4000, Decimal("0.4"))
    assert found["gpt"].amount == Decimal("13.00")


def test_work_of_ours_and_rows_of_opencost_meet_in_labels_and_controllers(june):
    by_label = amounts(asked(group="label", key="project"))
    ia, plataforma, storage = Decimal("604.80"), Decimal("352.80"), Decimal("5.01")
    assert by_label == {"p1": ia + storage, "p0": plataforma}
    by_controller = amounts(asked(group="controller"))
    assert by_controller["job/c"] == storage
    assert by_controller["Workload/w1"] == ia
    assert amounts(asked(group="pod"))["ns/w1"] == ia


def test_days_add_up_to_the_month_where_nothing_is_shared(june):
    days = [rows.JUNE + timedelta(days=n) for n in range(31)]
    total = Decimal(0)
    for start, end in pairwise(days):
        window = f"{start:%Y-%m-%dT%H:%M:%SZ},{end:%Y-%m-%dT%H:%M:%SZ}"
        total += asked(window=window, group="type", kept={"type": "gpu_direct"}).found.total
    month = asked(group="type", kept={"type": "gpu_direct"}).found.total
    assert abs(total - month) < Decimal("0.31")  # each day is rounded once


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"group": "colour"}, ("group", "BAD_VALUE")),
        ({"window": "soon"}, ("window", "BAD_VALUE")),
        ({"idle": "free"}, ("idle", "BAD_VALUE")),
        ({"group": "label"}, ("key", "REQUIRED")),
        ({"group": "team", "key": "equipo"}, ("key", "MUST_BE_EMPTY")),
    ],
)
def test_what_cannot_be_answered_is_refused_with_its_parameter(june, query, problem):
    with pytest.raises(Rejected) as caught:
        asked(**query)
    assert [(one.path, one.code) for one in caught.value.problems] == [problem]


def test_page_file_and_answer_say_the_same(june, fin, signed_in, token_of, client):
    address = "?window=lastmonth&group=team&idle=even"
    browser = signed_in(fin)
    page = browser.get(f"/cost/by/{address}").content.decode()
    assert "4,064.41" in page
    file = browser.get(f"/cost/by/{address}&format=csv").content.decode()
    headers = {"Authorization": token_of(fin, "cost:read")}
    answer = client.get(f"/api/v1/cost/{address}", headers=headers).json()
    assert answer["total"] == "4064.41"
    for row in answer["rows"]:
        assert f",{row['amount']},EUR," in file
    assert browser.get("/cost/by/?group=colour").status_code == 422
    assert client.get("/api/v1/cost/?group=colour", headers=headers).status_code == 422
    assert client.get("/api/v1/cost/?grup=team", headers=headers).status_code == 400


# ---- windows ------------------------------------------------------------------------------------
NOW = datetime(2026, 11, 4, 10, 30, tzinfo=UTC)  # a Wednesday
MADRID = [
    ("today", "2026-11-03T23:00", "2026-11-04T10:30"),
    ("yesterday", "2026-11-02T23:00", "2026-11-03T23:00"),
    ("week", "2026-10-31T23:00", "2026-11-04T10:30"),
    ("lastweek", "2026-10-24T22:00", "2026-10-31T23:00"),
    ("month", "2026-10-31T23:00", "2026-11-04T10:30"),
    ("lastmonth", "2026-09-30T22:00", "2026-10-31T23:00"),  # 745 h
    ("2026-10", "2026-09-30T22:00", "2026-10-31T23:00"),
    ("45m", "2026-11-04T09:45", "2026-11-04T10:30"),
    ("24h", "2026-11-03T10:30", "2026-11-04T10:30"),
    ("7d", "2026-10-28T23:00", "2026-11-04T10:30"),
    ("1w", "2026-10-28T23:00", "2026-11-04T10:30"),
    ("2026-11-01T00:00:00Z,2026-11-02T02:00:00+02:00", "2026-11-01T00:00", "2026-11-02T00:00"),
]


@pytest.mark.parametrize(("text", "start", "end"), MADRID)
def test_a_window_is_read_in_the_billing_time_zone(text, start, end):
    window = span_of(text, NOW, "Europe/Madrid")
    assert (f"{window.start:%Y-%m-%dT%H:%M}", f"{window.end:%Y-%m-%dT%H:%M}") == (start, end)


@pytest.mark.parametrize(
    "text",
    [
        *("", "7", "0d", "-3d", "7y", "99999w", "2026-13", "2026-12", "tomorrow"),
        "2026-11-01T00:00:00,2026-11-02T00:00:00",
        "2026-11-02T00:00:00Z,2026-11-01T00:00:00Z",
        "2026-11-05T00:00:00Z,2026-11-06T00:00:00Z",
        "2024-11-05T00:00:00Z,2026-11-01T00:00:00Z",
    ],
)
def test_what_is_no_window_is_refused(text):
    with pytest.raises(BadSpanError):
        span_of(text, NOW, "Europe/Madrid")
