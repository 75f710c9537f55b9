"""Bringing several dated rows into force at once: all or none, under one guard, each its problems.

Prices, mappings and shared costs are such rows: one follows another, none is ever edited. One that
has not begun was used by nothing, so it can be taken back.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from finops.outdating import hold_guard
from gpuplatform.common.problems import Problem, Rejected

Spec = TypeVar("Spec")
Row = TypeVar("Row")
SetOne = Callable[[Spec], tuple[Row | None, list[Problem]]]


def all_or_none(
    specs: Iterable[Spec],
    ready: Callable[[], SetOne[Spec, Row]],
    *,
    guard: str,
    name: str,
    clash: Problem,
) -> list[Row]:
    """Bring what ``specs`` say into force in one transaction.

    Args:
        specs: what is wanted, in order; a later one sees what the earlier ones have written.
        ready: called once ``guard`` is held; returns the writer of one, which gives back the row
            that stands then, or the problems why none does.
        guard: what keeps others from writing rows of the kind meanwhile.
        name: of the list in paths of problems, ``prices[1].amount``, where there are several.
        clash: what is wrong where a constraint of the database saw what the rules did not.

    Raises:
        Rejected: with the problems of every one; nothing was changed.
    """
    wanted = list(specs)
    try:
        with transaction.atomic():
            hold_guard(guard)
            return _each(wanted, ready(), name)
    except IntegrityError as error:
        raise Rejected([clash]) from error


def is_taken_back(row: Any, ends_at: datetime | None, now: datetime) -> bool:
    """Return whether to end ``row`` at once (``ends_at`` None) means that it never begins."""
    return ends_at is None and row.valid_from > now


def take_back(row: Any, alike: QuerySet[Any]) -> None:
    """Delete a row that has not begun; of ``alike`` the one that it was to follow goes on.

    ``row`` says from then on that it ends where it begins.
    """
    until, pk = row.valid_to, row.pk
    row.delete()
    alike.filter(valid_to=row.valid_from).update(valid_to=until)
    row.pk, row.valid_to = pk, row.valid_from


def _each(wanted: list[Spec], set_one: SetOne[Spec, Row], name: str) -> list[Row]:
    rows: list[Row] = []
    problems: list[Problem] = []
    for position, spec in enumerate(wanted):
        row, found = set_one(spec)
        prefix = f"{name}[{position}]." if len(wanted) > 1 else ""
        problems += [Problem(prefix + p.path, p.code, p.message, p.numbers) for p in found]
        rows += [row] if row is not None else []
    if problems:
        raise Rejected(problems)
    return rows
