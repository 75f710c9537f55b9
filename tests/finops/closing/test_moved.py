"""Queues and namespaces that go to another team: what was spent stays with whom it was."""

from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine

from finops import billing
from finops.allocation.facts import Period, instant
from finops.closing.late import book_late_data
from finops.mapping_facts import mapped, read_mappings
from finops.models import BillingPeriod, BillLine
from finops.selectors.summary import month_summary
from finops.staleness import stale_periods
from queues.access import Actor
from queues.descriptions import describe_cluster_queue
from queues.models import ClusterQueue, Ownership, Team
from queues.services import save_cluster_queue, save_namespace
from queues.specs import NamespaceSpec
from tests.finops import rows

from .world import AFTER, JUNE, charged_june, close

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
FIRST = 270  # hour of June in which IA's work began
LATER = rows.JULY + timedelta(days=3)


def give(queue: str, team: str, at):
    with time_machine.travel(at, tick=False):
        spec = describe_cluster_queue(ClusterQueue.objects.get(name=queue))
        save_cluster_queue(replace(spec, team=team), actor=None, reason="reorganised")


def promises_of_june():
    summary = month_summary(Actor(None, frozenset({"finance"})), JUNE)
    return {row.view.team.name: row.promised for row in summary.rows if row.view.team}


def owners(value, *, start=rows.JUNE, end=rows.JULY):
    window = Period(instant(start), instant(end))
    found = mapped(window, "", read_mappings(window)).owners
    said = [one for one in found if one.value == value and one.kind != "label"]
    return [(one.team, one.start, one.end) for one in said]


def test_a_queue_that_moves_after_a_month_was_closed_takes_nothing_of_it_along(fin, ada):
    charged_june()
    close(fin, ada)
    before = promises_of_june()
    assert before["ia"].guaranteed > 0
    give("cq-ia", "datos", LATER)
    assert book_late_data(LATER + HOUR) == []
    assert promises_of_june() == before


def test_in_an_open_month_each_team_pays_for_its_own_time(db):
    charged_june()
    direct = BillLine.objects.filter(bill__period__name=JUNE, kind="gpu_direct")
    before = sum(line.quantity for line in direct.filter(bill__team__name__in=("ia", "datos")))
    give("cq-ia", "datos", rows.JUNE + 351 * HOUR)
    billing.rebuild_draft(JUNE, now=AFTER)
    hours = {team: direct.get(bill__team__name=team).quantity for team in ("ia", "datos")}
    assert hours["ia"] == 351 - FIRST
    assert hours["ia"] + hours["datos"] == before


def test_what_was_nobodys_before_is_its_first_teams_in_open_months(db):
    charged_june()
    with time_machine.travel(rows.JUNE + 100 * HOUR, tick=False):
        save_namespace(NamespaceSpec("ns-new", {}, None), actor=None)
    with time_machine.travel(rows.JUNE + 200 * HOUR, tick=False):
        save_namespace(NamespaceSpec("ns-new", {}, "ia"), actor=None)
    assert owners("ns-new") == [("ia", None, None)]


def test_a_namespace_that_is_declared_after_the_closing_changes_nothing_of_it(fin, ada):
    charged_june()
    close(fin, ada)
    with time_machine.travel(LATER, tick=False):
        save_namespace(NamespaceSpec("ns-new", {}, "ia"), actor=None)
    end = instant(BillingPeriod.objects.get(name=JUNE).ends_at)
    assert owners("ns-new") == [("ia", end, None)]


def test_a_queue_that_goes_and_comes_back_under_its_name_is_another_teams_from_then_on(db):
    charged_june()
    give("cq-ia", "", rows.JUNE + 10 * HOUR)
    give("cq-ia", "datos", rows.JUNE + 20 * HOUR)
    ten, twenty = (instant(rows.JUNE + n * HOUR) for n in (10, 20))
    assert owners("cq-ia") == [("ia", None, ten), ("datos", twenty, None)]


def test_what_a_team_had_that_is_gone_by_now_is_nobodys(db):
    charged_june()
    gone = Team.objects.create(name="pilot", display_name="Pilot")
    for team in ("pilot", None):
        save_namespace(NamespaceSpec("ns-pilot", {}, team), actor=None, reason="it has ended")
    gone.delete()
    assert owners("ns-pilot") == []


def test_an_edit_that_leaves_the_team_alone_writes_no_history(db):
    charged_june()
    give("cq-ia", "ia", rows.JUNE + 10 * HOUR)
    assert not Ownership.objects.exists()
    assert Team.objects.get(name="ia").owned.count() == 0


def test_a_move_asks_for_a_new_draft_of_the_month_it_falls_into(db):
    charged_june()
    with time_machine.travel(rows.JUNE + 10 * HOUR, tick=False):
        billing.rebuild_draft(JUNE)
    assert not stale_periods().exists()
    give("cq-ia", "datos", rows.JUNE + 11 * HOUR)
    assert [period.name for period in stale_periods()] == [JUNE]


def test_a_move_leaves_the_draft_of_a_month_alone_that_was_over_by_then(db):
    charged_june()
    give("cq-ia", "datos", LATER)
    assert not stale_periods().exists()


def test_a_first_team_asks_for_new_drafts_of_months_that_were_over_by_then(db):
    charged_june()
    with time_machine.travel(LATER, tick=False):
        save_namespace(NamespaceSpec("ns-new", {}, "ia"), actor=None)
    assert [period.name for period in stale_periods()] == [JUNE]
