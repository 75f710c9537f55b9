"""Play the questions that wait, one after another; any process may die at any instant.

A question is taken by a guarded update, and whoever plays it says so about once a second. One
that has been silent for too long is taken again by the next look; one that was cancelled
meanwhile is dropped by whoever plays it.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F

from finops.allocation.facts import Period, instant
from finops.loader import load_window, policy_of
from finops.models import BillingPeriod, QuotaReplay
from finops.models.replays import ReplayStage, ReplayState
from finops.replaying import telling
from finops.replaying.costing import as_played, costs_of
from gpuplatform.common import clock
from gpuplatform.common.longwork import MOST_ATTEMPTS, over, take_oldest
from scheduling.engine import codec
from scheduling.engine.snapshot import Snapshot
from scheduling.replay.figures import figures_of
from scheduling.replay.player import play
from scheduling.replay.policies import AS_GIVEN
from scheduling.replay.tape import Tape
from scheduling.selectors.past_traces import Past, past_trace, span_between

SILENT = timedelta(minutes=3)  # after which whoever plays it is taken for lost
TOLD_S = 1.0
SHOWN = 200  # characters of an unexpected error
logger = logging.getLogger(__name__)
Tell = Callable[[ReplayStage, int, int], None]


class _DroppedError(Exception):
    """It was cancelled, or somebody else has taken it."""


def play_next() -> UUID | None:
    """Play the oldest question that waits; None where none does, or one is being played."""
    problem = {"code": "REPLAY_LOST", "numbers": {"count": MOST_ATTEMPTS}}
    lost = _over(ReplayState.FAILED, problem)
    row = take_oldest(QuotaReplay.objects.all(), clock.now(), silent=SILENT, lost=lost)
    if row is None:
        return None
    _play_to_the_end(row)
    return row.pk


def _over(state: ReplayState, problem: Any = None) -> dict[str, Any]:
    return {**over(state, problem), "stage": "", "site": None, "promised": None}


def _play_to_the_end(row: QuotaReplay) -> None:
    mine = QuotaReplay.objects.filter(pk=row.pk, state=ReplayState.RUNNING, attempts=row.attempts)
    tell = _teller(mine)
    try:
        result = _result(row, tell)
    except _DroppedError:
        return
    except Exception as error:  # a fault of ours must not leave it running for ever
        logger.exception("replay.failed", extra={"replay": str(row.pk)})
        said = f"{type(error).__name__}: {error}"[:SHOWN]
        problem = {"code": "REPLAY_FAILED", "numbers": {"problem": said}}
        mine.update(**_over(ReplayState.FAILED, problem))
        return
    mine.update(**_over(ReplayState.DONE), result=result, come=F("whole"))
    logger.info("replay.done", extra={"replay": str(row.pk)})


def _teller(mine: Any) -> Tell:
    """Return what writes how far it is, about once a second, and notices that it is over."""
    last: list[float] = [0.0]
    stages: list[str] = [""]

    def tell(stage: ReplayStage, come: int, whole: int) -> None:
        at = time.monotonic()
        if stage == stages[0] and at - last[0] < TOLD_S:
            return
        last[0], stages[0] = at, stage
        now = clock.now()
        if not mine.update(stage=stage, come=come, whole=whole, changed_at=now):
            raise _DroppedError

    return tell


def _result(row: QuotaReplay, tell: Tell) -> dict[str, Any]:
    """Play before and after, and bill what was and what came out."""
    assert row.site is not None, "kept until it is over"
    assert row.promised is not None, "kept until it is over"
    tell(ReplayStage.READING, 0, 0)
    site, promised = codec.decode_snapshot(row.site), codec.decode_snapshot(row.promised)
    edited = replace(promised, nodes=site.nodes)
    past = past_trace(site, row.starts_at, row.ends_at, row.asked_at)
    sides = {"before": site, "after": edited}
    tapes = {name: _played(row, one, past, name, tell) for name, one in sides.items()}
    whole = 2 * len(past.trace.arrivals)
    tell(ReplayStage.COST, whole, whole)
    return {
        "workloads": len(past.was),
        "left_out": dict(past.left_out),
        "was": telling.really(past.was),
        **{
            name: telling.played(figures_of(AS_GIVEN, sides[name], tape))
            for name, tape in tapes.items()
        },
        "cost": _costs(row, past, sides, tapes),
    }


def _played(row: QuotaReplay, site: Snapshot, past: Past, name: str, tell: Tell) -> Tape:
    arrivals = len(past.trace.arrivals)
    stage = ReplayStage(name)
    ahead = 0 if stage == ReplayStage.BEFORE else arrivals

    def heed(come: int, of: int) -> None:
        tell(stage, ahead + come, 2 * of)

    return play(site, past.trace, heed=heed, counted=span_between(row.starts_at, row.ends_at))


def _costs(
    row: QuotaReplay, past: Past, sides: dict[str, Snapshot], tapes: dict[str, Tape]
) -> dict[str, Any]:
    """Return what each team pays: as it was, and as it was played under both quotas."""
    period = _period_of(row)
    window = Period(
        instant(row.starts_at), instant(row.ends_at), period.time_zone, period.currency
    )
    # What was played is our own metering, whatever the month's bills rest on.
    month = load_window(window, replace(policy_of(period), usage_source="scheduler"))
    found = {"was": costs_of(month, period.idle_policy)}
    for name, tape in tapes.items():
        facts = as_played(month, tape.holds, past.marks, sides[name])
        found[name] = costs_of(facts, period.idle_policy)
    unpriced = sorted({flavor for _source, flavor in month.unpriced})
    return telling.costs(
        found, currency=period.currency, idle_policy=period.idle_policy, unpriced=unpriced
    )


def _period_of(row: QuotaReplay) -> BillingPeriod:
    """Return the month in which the window begins, or one with the defaults."""
    found = BillingPeriod.objects.filter(starts_at__lte=row.starts_at, ends_at__gt=row.starts_at)
    return found.first() or BillingPeriod(
        time_zone=settings.BILLING_TIME_ZONE, currency=settings.CURRENCY
    )
