"""What may be asked of a replay, and the writers of questions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from celery import current_app
from django.conf import settings
from django.db import transaction

from finops.models import QuotaReplay
from finops.models.replays import OPEN, ReplayState
from gpuplatform.common import audit, clock, reasons
from gpuplatform.common.problems import Problem, Rejected
from queues.models import FlavorQuota, User
from queues.services.cells import save_cells
from queues.specs import CellSpec
from scheduling.engine import codec
from scheduling.engine.snapshot import Snapshot
from scheduling.loader import load_platform
from scheduling.replay.site import emptied
from scheduling.selectors.past_traces import count_past

MOST_DAYS = 92
MOST_OPEN = 5
KEPT = 100  # questions that have been answered; older ones are forgotten
MOST_CELLS = 2_000
TASK = "finops.replay_quotas"
AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """A question: local days of the billing time zone, the last one included, and amounts."""

    first_day: date
    last_day: date
    cells: tuple[CellSpec, ...] = ()
    note: str = ""


def ask(spec: ReplaySpec, *, actor: User) -> QuotaReplay:
    """Write down a question, with the platform as it stands; the worker is woken.

    The edited quotas meet the rules of every edit of quotas, and are not kept.

    Raises:
        Rejected: no such window or cell, an amount that breaks a rule, too much work, or too
            many questions that are still open.
    """
    now = clock.now()
    starts_at, ends_at = _window(spec, now)
    _refuse_size(starts_at, ends_at)
    site, promised, cells = _platforms(spec.cells, actor, now)
    with transaction.atomic():
        still_open = QuotaReplay.objects.filter(state__in=OPEN).count()
        if still_open >= MOST_OPEN:
            raise _refused("REPLAY_BUSY", "", count=still_open)
        row = QuotaReplay.objects.create(
            asked_by=actor,
            asked_name=actor.get_username(),
            note=spec.note,
            starts_at=starts_at,
            ends_at=ends_at,
            cells=cells,
            site=codec.encode_snapshot(site),
            promised=codec.encode_snapshot(promised),
            asked_at=now,
            changed_at=now,
        )
        audit.record(
            actor,
            "quota_replay.asked",
            ("QuotaReplay", str(row.pk)),
            after={"from": starts_at.isoformat(), "to": ends_at.isoformat(), "cells": cells},
            reason=spec.note,
        )
        _forget_old()
        transaction.on_commit(_wake, robust=True)
    return row


def cancel(uid: UUID, *, actor: User) -> bool:
    """Let a replay be over; whoever plays it notices and keeps nothing. False: it was over."""
    now = clock.now()
    with transaction.atomic():
        over = {"state": ReplayState.CANCELLED, "finished_at": now, "changed_at": now}
        mine = QuotaReplay.objects.filter(pk=uid, state__in=OPEN)
        if not mine.update(**over, site=None, promised=None):
            return False
        audit.record(actor, "quota_replay.cancelled", ("QuotaReplay", str(uid)))
    return True


def window_of_days(first: date, last: date) -> tuple[datetime, datetime]:
    """Return local days of the billing time zone, both included, as instants."""
    zone = ZoneInfo(settings.BILLING_TIME_ZONE)
    ends = last + timedelta(days=1)
    return datetime.combine(first, time(), zone), datetime.combine(ends, time(), zone)


def _window(spec: ReplaySpec, now: datetime) -> tuple[datetime, datetime]:
    days = (spec.last_day - spec.first_day).days + 1
    if not 1 <= days <= MOST_DAYS or spec.last_day >= date.max - timedelta(days=1):
        raise _refused("REPLAY_WINDOW", "to", most=MOST_DAYS)
    starts_at, ends_at = window_of_days(spec.first_day, spec.last_day)
    if ends_at > now:
        raise _refused("REPLAY_WINDOW", "to", most=MOST_DAYS)
    return starts_at, ends_at


def _refuse_size(starts_at: datetime, ends_at: datetime) -> None:
    count, most = count_past(starts_at, ends_at), settings.REPLAY_MOST_WORKLOADS
    if count > most:
        raise _refused("REPLAY_TOO_LARGE", "from", count=count, most=most)
    if not count:
        raise _refused("REPLAY_NO_WORK", "from")


def _refused(code: str, path: str, **numbers: int) -> Rejected:
    sentence = reasons.sentence(code, {"path": path, **numbers})
    return Rejected([Problem(path, code, sentence, numbers)])


def _platforms(
    cells: Sequence[CellSpec], actor: User, now: datetime
) -> tuple[Snapshot, Snapshot, list[dict[str, Any]]]:
    """Return the platform as it is, as it would be with these cells, and what they change."""
    if len(cells) > MOST_CELLS:
        raise _refused("OUT_OF_RANGE", "cells", value=len(cells), low=0, high=MOST_CELLS)
    with transaction.atomic():
        site = emptied(load_platform(now))
        was = _amounts(cells)
        save_cells(cells, actor=actor)
        promised = replace(emptied(load_platform(now)), nodes=())
        transaction.set_rollback(True)
    told = [asdict(cell) | {"was": was[cell.place]} for cell in cells]
    changed = [one for one in told if any(one[name] != one["was"][name] for name in AMOUNTS)]
    return site, promised, changed


def _amounts(cells: Sequence[CellSpec]) -> dict[tuple[str, str, str], dict[str, int | None]]:
    queues = {cell.queue for cell in cells}
    rows = FlavorQuota.objects.filter(cluster_queue__name__in=queues)
    columns = ("cluster_queue__name", "flavor", "resource", *AMOUNTS)
    return {
        (queue, flavor, resource): dict(zip(AMOUNTS, amounts, strict=True))
        for queue, flavor, resource, *amounts in rows.values_list(*columns)
    }


def _forget_old() -> None:
    """Keep the newest that are over."""
    over = QuotaReplay.objects.exclude(state__in=OPEN).order_by("-asked_at", "uid")
    old = list(over.values_list("pk", flat=True)[KEPT : KEPT + MOST_CELLS])
    QuotaReplay.objects.filter(pk__in=old).delete()


def _wake() -> None:
    """Wake the worker; where the broker is away, beat finds the question."""
    try:
        current_app.send_task(TASK, ignore_result=True, retry=False)
    except OSError:
        return
