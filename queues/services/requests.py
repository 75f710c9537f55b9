"""Requests of quota: asked by a lead, decided by an admin, given back when their day has come.

A request is a difference: an approval adds to what stands by then, and a loan takes back what it
gave and no more. An edit made meanwhile stays.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from gpuplatform.common import audit, clock, reasons
from gpuplatform.common.problems import Problem, Rejected
from queues.descriptions import describe_cluster_queue
from queues.models import ClusterQueue, QuotaRequest, Team, User
from queues.models.requests import RequestState
from queues.services.cells import cells_of, save_cells
from queues.services.writing import refuse
from queues.specs import CellSpec

LEAST_WORDS = 10
AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")
Places = dict[tuple[str, str, str], CellSpec]
logger = logging.getLogger(__name__)


def ask_quota(
    cells: Sequence[CellSpec], team: Team, *, actor: User, reason: str, until: datetime | None
) -> QuotaRequest:
    """Write down what a team asks for its own queues; nothing is changed yet.

    Raises:
        Rejected: no reason, a day that is over, a foreign queue, an amount that breaks a rule.
    """
    refuse(_problems(cells, team, reason, until))
    with transaction.atomic():
        stand = _standing({cell.queue for cell in cells})
        save_cells(cells, actor=actor)
        transaction.set_rollback(True)
    told = [_told(cell, stand[cell.place]) for cell in cells]
    with transaction.atomic():
        row = QuotaRequest.objects.create(
            team=team,
            asked_by=actor,
            asked_name=actor.get_username(),
            reason=reason,
            cells=told,
            until=until,
        )
        _note(row, actor, "asked", reason)
    return row


def approve(row: QuotaRequest, *, actor: User, note: str, lender: str = "") -> QuotaRequest:
    """Give what is asked for; with a ``lender``, out of that queue's quota.

    Raises:
        Rejected: it is decided already, no reason, or amounts that break a rule now.
    """
    refuse(_lacks_words("note", note))
    with transaction.atomic():
        _decide(row, RequestState.APPROVED, actor, note)
        wanted = cells_with(row, lender)
        stand = _standing({cell.queue for cell in wanted})
        save_cells(wanted, actor=actor, reason=f"Request #{row.pk}: {note}")
        row.lender = lender
        row.given = [_told(cell, stand[cell.place]) for cell in wanted]
        row.save(update_fields=["lender", "given"])
        _note(row, actor, "approved", note)
    return row


def decline(row: QuotaRequest, *, actor: User, note: str) -> QuotaRequest:
    """Say no, and why. Raises Rejected: it is decided already, or no reason."""
    refuse(_lacks_words("note", note))
    with transaction.atomic():
        _decide(row, RequestState.DECLINED, actor, note)
        _note(row, actor, "declined", note)
    return row


def withdraw(row: QuotaRequest, *, actor: User) -> QuotaRequest:
    """Let an open request be over. Raises Rejected: it is decided already."""
    with transaction.atomic():
        _decide(row, RequestState.WITHDRAWN, actor, "")
        _note(row, actor, "withdrawn", "")
    return row


def end_loans(now: datetime) -> list[int]:
    """Take back what was given until now or earlier; twice is harmless."""
    due = QuotaRequest.objects.filter(state=RequestState.APPROVED, until__lte=now)
    return [row.pk for row in due.order_by("until", "pk") if _end(row, now)]


def cells_with(row: QuotaRequest, lender: str = "") -> list[CellSpec]:
    """Return what stands with what a request adds to it, and what is left to the lender.

    Raises:
        Rejected: the lender is not promised as much.
    """
    stand = _standing({*(told["queue"] for told in row.cells), lender} - {""})
    cells = [_with(told, stand) for told in row.cells]
    return [*cells, *_lent(cells, stand, lender)]


def moved_since(row: QuotaRequest) -> list[tuple[CellSpec, CellSpec]]:
    """Return the cells that somebody has edited since an open request was written down.

    Each as it stands, and as an approval would leave it. 3 queries.
    """
    stand = _standing({told["queue"] for told in row.cells})
    return [
        (stand[cell.place], cell)
        for told in row.cells
        if (cell := _with(told, stand)) != _cell(told) and cell.place in stand
    ]


def given_otherwise(row: QuotaRequest) -> list[tuple[CellSpec, CellSpec]]:
    """Return the cells of an approved request that came to other amounts than were asked for.

    Each as it stood, and as the approval left it; what the lender gave is not among them.
    """
    asked = {_cell(told).place: _cell(told) for told in row.cells}
    given = [(_cell({**told, **told["was"]}), _cell(told)) for told in row.given if told["was"]]
    return [(was, now) for was, now in given if now.place in asked and now != asked[now.place]]


def _with(told: Mapping[str, Any], stand: Places) -> CellSpec:
    """Return a cell as it stands with what was asked for; limits of others' edits stay."""
    asked, was = _cell(told), told["was"]
    now = stand.get(asked.place)
    if now is None:
        return asked  # saving it says what is missing
    nominal = max(0, now.nominal + asked.nominal - int(was["nominal"]))
    borrowing, lending = (
        getattr(now if getattr(asked, name) == was[name] else asked, name) for name in AMOUNTS[1:]
    )
    lending = None if lending is None else min(lending, nominal)
    return replace(asked, nominal=nominal, borrowing_limit=borrowing, lending_limit=lending)


def _end(row: QuotaRequest, now: datetime) -> bool:
    with transaction.atomic():
        mine = QuotaRequest.objects.filter(pk=row.pk, state=RequestState.APPROVED)
        if not mine.update(state=RequestState.ENDED, ended_at=now):
            return False
        stand = _standing({told["queue"] for told in row.given})
        back = [
            _back(stand[cell.place], cell, told["was"])
            for told in row.given
            if (cell := _cell(told)).place in stand
        ]
        words = f"The loan of request #{row.pk} has ended"
        try:
            with transaction.atomic():
                save_cells(back, actor=None, reason=words)
        except Rejected as refusal:  # an edit made meanwhile forbids it: a person must look
            words = f"{words}; what it gave cannot be taken back: {refusal}"
            logger.warning("loan.kept", extra={"request": row.pk, "why": str(refusal)})
        row.state = RequestState.ENDED.value
        _note(row, None, "ended", words)
    return True


def _back(now: CellSpec, given: CellSpec, was: Mapping[str, Any]) -> CellSpec:
    """Return a cell without what was given; limits that somebody else has set stay."""
    nominal = max(0, now.nominal - (given.nominal - int(was["nominal"])))
    borrowing, lending = (
        was[name] if getattr(now, name) == getattr(given, name) else getattr(now, name)
        for name in AMOUNTS[1:]
    )
    lending = None if lending is None else min(lending, nominal)
    return replace(now, nominal=nominal, borrowing_limit=borrowing, lending_limit=lending)


def _lent(cells: Sequence[CellSpec], stand: Places, lender: str) -> Iterator[CellSpec]:
    """Yield the lender's cells without what the others get."""
    for cell in cells if lender else ():
        more = cell.nominal - stand[cell.place].nominal if cell.place in stand else 0
        place = lender, cell.flavor, cell.resource
        if more <= 0:
            continue
        if place not in stand or stand[place].nominal < more:
            have = stand[place].nominal if place in stand else 0
            numbers: dict[str, str | int] = {
                "queue": lender,
                "flavor": cell.flavor,
                "resource": cell.resource,
                "need": more,
                "have": have,
            }
            raise Rejected([_problem("lender", "REQUEST_LENDER_SHORT", numbers)])
        left = stand[place].nominal - more
        lending = stand[place].lending_limit
        yield replace(
            stand[place],
            nominal=left,
            lending_limit=None if lending is None else min(lending, left),
        )


def _problems(
    cells: Sequence[CellSpec], team: Team, reason: str, until: datetime | None
) -> Iterator[Problem]:
    yield from _lacks_words("reason", reason)
    if until is not None and until <= clock.now():
        yield _problem("until", "REQUEST_OVER_BEFORE", {})
    if not cells:
        yield _problem("cells", "REQUEST_EMPTY", {})
    own = set(ClusterQueue.objects.filter(team=team).values_list("name", flat=True))
    for number, cell in enumerate(cells):
        if cell.queue not in own:
            yield _problem(f"cells[{number}].queue", "QUOTA_NO_QUEUE", {"queue": cell.queue})


def _lacks_words(path: str, text: str) -> Iterator[Problem]:
    if len(text.strip()) < LEAST_WORDS:
        yield _problem(path, "REQUEST_WHY", {"least": LEAST_WORDS})


def _problem(path: str, code: str, numbers: Mapping[str, str | int]) -> Problem:
    return Problem(path, code, reasons.sentence(code, numbers), numbers)


def _decide(row: QuotaRequest, state: RequestState, actor: User, note: str) -> None:
    """Move an open request on, if nobody else has."""
    decided = {
        "state": state.value,
        "decided_by": actor,
        "decided_name": actor.get_username(),
        "decided_at": clock.now(),
        "note": note,
    }
    if not QuotaRequest.objects.filter(pk=row.pk, state=RequestState.OPEN).update(**decided):
        raise Rejected([_problem("state", "REQUEST_DECIDED", {})])
    row.refresh_from_db()


def _standing(queues: set[str]) -> Places:
    known = ClusterQueue.objects.select_related("team", "cohort").prefetch_related("quotas")
    rows = known.filter(name__in=queues)
    return {cell.place: cell for row in rows for cell in cells_of(describe_cluster_queue(row))}


def _told(cell: CellSpec, stood: CellSpec) -> dict[str, Any]:
    return asdict(cell) | {"was": {name: getattr(stood, name) for name in AMOUNTS}}


def _cell(told: Mapping[str, Any]) -> CellSpec:
    return CellSpec(
        told["queue"],
        told["flavor"],
        told["resource"],
        told["nominal"],
        told["borrowing_limit"],
        told["lending_limit"],
    )


def _note(row: QuotaRequest, actor: User | None, verb: str, reason: str) -> None:
    until = row.until.isoformat() if row.until else None
    audit.record(
        actor,
        f"quota_request.{verb}",
        ("QuotaRequest", str(row.pk)),
        after={"cells": row.cells, "until": until, "lender": row.lender},
        reason=reason,
        team=row.team.name,
    )
