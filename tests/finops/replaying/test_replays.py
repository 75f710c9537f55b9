"""Asked, played, billed, told: through the services that page, REST and task use."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from finops.models import QuotaReplay
from finops.replaying import running
from finops.replaying.asking import MOST_OPEN, ReplaySpec, ask, cancel
from finops.tasks import replay_quotas
from gpuplatform.common import clock
from gpuplatform.common.models import AuditEntry, Change
from gpuplatform.common.problems import Rejected
from queues.models import ClusterQueue, FlavorQuota
from queues.specs import CellSpec
from tests.finops.replaying.past import busy_week, platform, ran
from tests.finops.rows import FLAVOR, GPU

pytestmark = pytest.mark.django_db
FIRST, LAST = date(2026, 6, 1), date(2026, 6, 7)


def cell(queue, nominal, **limits):
    return CellSpec(queue, FLAVOR, GPU, nominal, **limits)


def question(*cells, first=FIRST, last=LAST):
    return ReplaySpec(first, last, cells)


@pytest.fixture
def week():
    platform()
    return busy_week()


def answered(spec, ada):
    row = ask(spec, actor=ada)
    assert running.play_next() == row.pk
    row.refresh_from_db()
    assert (row.state, row.problem) == ("done", None)
    return row.result


def amounts(result, side):
    return {team: Decimal(costs[side]) for team, costs in result["cost"]["teams"].items()}


# ---- what comes out ----------------------------------------------------------------------------
def test_under_the_standing_quotas_everybody_waits_and_pays_as_it_was(week, ada):
    result = answered(question(), ada)
    assert result["was"]["teams"] == result["before"]["teams"] == result["after"]["teams"]
    assert result["was"]["waits"]["mean_s"] == pytest.approx(10 * 3600 / 3)
    # 80 and 10 GPU-hours of Datos at 1.40; IA's gang of 8 ran for 10 h.
    assert amounts(result, "was")["datos"] == Decimal("126.00")
    assert amounts(result, "was") == amounts(result, "before") == amounts(result, "after")


def test_who_gets_more_quota_waits_less_and_the_whole_costs_the_same(ada):
    platform()
    ran("datos", "first", 0, 10, gpus=4)
    ran("ia", "own", 0, 10, gpus=4)
    ran("datos", "second", 1, 10, gpus=4, waited=9)
    for name in ("datos", "ia"):  # nothing is lent, so that quota alone decides
        FlavorQuota.objects.filter(cluster_queue__name=f"cq-{name}").update(borrowing_limit=0)
    more = [cell("cq-datos", 8, borrowing_limit=0), cell("cq-ia", 0, borrowing_limit=0)]
    result = answered(question(*more), ada)
    assert result["before"]["teams"]["datos"]["mean_s"] == 9 * 3600 / 2
    assert result["after"]["teams"]["datos"]["mean_s"] == 0
    assert result["after"]["unfinished"] == 1  # IA has no quota left
    assert amounts(result, "after").keys() >= {"datos", ""}
    totals = {sum(amounts(result, side).values()) for side in ("was", "before", "after")}
    assert totals == {Decimal("1881.60")}  # 8 GPUs for a week
    assert amounts(result, "after").get("ia", 0) == 0


def test_borrowed_and_lost_gpu_hours_and_evictions_are_told(ada):
    platform()
    ClusterQueue.objects.update(reclaim_within_cohort="Any")
    ran("datos", "wide", 0, 10, gpus=4, pods=2)
    ran("ia", "own", 5, 1, gpus=4, waited=5)
    result = answered(question(), ada)
    use = result["after"]["use"]
    assert (use["evictions"], use["lost_gpu_hours"]) == (1, pytest.approx(40))
    assert use["borrowed_gpu_hours"] == pytest.approx(4 * 5 + 4 * 10)


def test_work_that_was_left_out_is_billed_as_it_ran(week, ada):
    week[1].admissions.update(cluster_queue="cq-gone")
    result = answered(question(), ada)
    assert result["left_out"] == {"no_queue": 1}
    assert amounts(result, "after")["datos"] == amounts(result, "was")["datos"]


# ---- asking ------------------------------------------------------------------------------------
def test_asking_changes_no_quota_and_wakes_no_cycle(week, ada):
    changes, entries = Change.objects.count(), AuditEntry.objects.count()
    row = ask(question(cell("cq-datos", 2)), actor=ada)
    assert FlavorQuota.objects.get(cluster_queue__name="cq-datos").nominal == 4
    assert Change.objects.count() == changes
    assert AuditEntry.objects.count() == entries + 1
    was = {"nominal": 4, "borrowing_limit": None, "lending_limit": None}
    assert [(one["nominal"], one["was"]) for one in row.cells] == [(2, was)]


def test_an_edit_after_the_question_does_not_change_the_answer(week, ada):
    row = ask(question(), actor=ada)
    FlavorQuota.objects.update(nominal=0, borrowing_limit=0)
    running.play_next()
    row.refresh_from_db()
    assert row.result["before"]["unfinished"] == 0
    assert (row.site, row.promised) == (None, None)


@pytest.mark.parametrize(
    ("spec", "code", "path"),
    [
        (question(first=LAST, last=FIRST), "REPLAY_WINDOW", "to"),
        (question(first=date(2026, 1, 1)), "REPLAY_WINDOW", "to"),
        (question(last=date(9999, 12, 31)), "REPLAY_WINDOW", "to"),
        (question(first=date(2026, 5, 1), last=date(2026, 5, 2)), "REPLAY_NO_WORK", "from"),
        (question(cell("cq-nobody", 1)), "QUOTA_NO_QUEUE", "cells[0].queue"),
        (question(CellSpec("cq-datos", "a100", GPU, 1)), "QUOTA_NO_CELL", "cells[0].flavor"),
        (question(cell("cq-ia", 1), cell("cq-ia", 2)), "QUOTA_TWICE", "cells[1]"),
        (
            question(cell("cq-ia", 1), cell("cq-datos", 2, lending_limit=3)),
            "lending_above_nominal",
            "cells[1].lending_limit",
        ),
    ],
)
def test_what_cannot_be_replayed_is_refused_and_nothing_is_kept(week, ada, spec, code, path):
    with pytest.raises(Rejected) as refused:
        ask(spec, actor=ada)
    assert [(p.code, p.path) for p in refused.value.problems] == [(code, path)]
    assert not QuotaReplay.objects.exists()


def test_a_window_that_goes_on_is_refused(week, ada):
    today = clock.now().date()
    with pytest.raises(Rejected) as refused:
        ask(question(first=today, last=today), actor=ada)
    assert refused.value.problems[0].code == "REPLAY_WINDOW"


def test_too_much_work_is_refused_with_both_numbers(week, ada, settings):
    settings.REPLAY_MOST_WORKLOADS = 2
    with pytest.raises(Rejected) as refused:
        ask(question(), actor=ada)
    (problem,) = refused.value.problems
    assert (problem.code, problem.numbers) == ("REPLAY_TOO_LARGE", {"count": 3, "most": 2})


def test_more_open_questions_than_somebody_waits_for_are_refused(week, ada):
    for _ in range(MOST_OPEN):
        ask(question(), actor=ada)
    with pytest.raises(Rejected) as refused:
        ask(question(), actor=ada)
    assert refused.value.problems[0].code == "REPLAY_BUSY"


# ---- playing -----------------------------------------------------------------------------------
def test_one_look_plays_all_that_waits_in_order_and_another_one_nothing(week, ada):
    first, second = (ask(question(), actor=ada) for _ in range(2))
    replay_quotas()
    for row in (first, second):
        row.refresh_from_db()
    assert first.finished_at <= second.started_at
    assert {first.state, second.state} == {"done"}
    assert running.play_next() is None


def test_a_cancelled_replay_is_dropped_by_whoever_plays_it(week, ada, monkeypatch):
    row = ask(question(), actor=ada)
    real = running.past_trace

    def cancelled_meanwhile(*args):
        assert cancel(row.pk, actor=ada)
        return real(*args)

    monkeypatch.setattr(running, "past_trace", cancelled_meanwhile)
    running.play_next()
    row.refresh_from_db()
    assert (row.state, row.result, row.site) == ("cancelled", None, None)
    assert not cancel(row.pk, actor=ada)


def test_a_lost_worker_is_noticed_and_the_replay_played_again(week, ada):
    row = ask(question(), actor=ada)
    taken = QuotaReplay.objects.filter(pk=row.pk)
    long_ago = clock.now() - running.SILENT - timedelta(seconds=1)
    taken.update(state="running", attempts=1, changed_at=clock.now())
    assert running.play_next() is None  # somebody plays it
    taken.update(changed_at=long_ago)
    assert running.play_next() == row.pk
    row.refresh_from_db()
    assert (row.state, row.attempts) == ("done", 2)


def test_a_replay_that_loses_its_worker_again_and_again_fails(week, ada):
    row = ask(question(), actor=ada)
    long_ago = clock.now() - running.SILENT - timedelta(seconds=1)
    lost = {"state": "running", "attempts": running.MOST_ATTEMPTS, "changed_at": long_ago}
    QuotaReplay.objects.filter(pk=row.pk).update(**lost)
    assert running.play_next() is None
    row.refresh_from_db()
    assert (row.state, row.problem["code"]) == ("failed", "REPLAY_LOST")


def test_a_fault_of_ours_is_told_and_keeps_nobody_waiting(week, ada, monkeypatch, caplog):
    row, other = (ask(question(), actor=ada) for _ in range(2))

    def breaks(*_args, **_more):
        raise ZeroDivisionError("nothing to divide by")

    with monkeypatch.context() as broken:
        broken.setattr(running, "play", breaks)
        running.play_next()
    row.refresh_from_db()
    assert (row.state, row.problem["code"]) == ("failed", "REPLAY_FAILED")
    assert "replay.failed" in caplog.text
    assert running.play_next() == other.pk


def test_progress_is_written_stage_by_stage(week, ada, monkeypatch):
    monkeypatch.setattr(running, "TOLD_S", 0.0)
    row, seen, real = ask(question(), actor=ada), [], running.play
    columns = ("stage", "come", "whole")

    def watched(*args, heed, **more):
        def told(come, of):
            heed(come, of)
            seen.append(QuotaReplay.objects.values_list(*columns).get(pk=row.pk))

        return real(*args, heed=told, **more)

    monkeypatch.setattr(running, "play", watched)
    running.play_next()
    assert (seen[0], seen[-1]) == (("before", 1, 6), ("after", 6, 6))
    assert [come for _stage, come, _whole in seen] == sorted(come for _s, come, _w in seen)
