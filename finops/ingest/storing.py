"""The only writer of what was loaded: a day of a source is replaced as a whole, or not at all."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import date
from operator import attrgetter
from typing import Any

from django.db import models

from finops.models import (
    AssetRow,
    CostRow,
    GpuUseRow,
    NodePriceRow,
    Payload,
    Source,
    TeamDayRow,
    TokenRow,
)
from finops.sources.recording import Recording
from finops.sources.rows import Asset, Cost, GpuUse, NodePrice, Request, Row, TeamDay
from finops.sources.windows import Window
from scheduling import persist

TABLES: Mapping[type[Row], type[models.Model]] = {
    Cost: CostRow,
    Asset: AssetRow,
    Request: TokenRow,
    TeamDay: TeamDayRow,
    GpuUse: GpuUseRow,
    NodePrice: NodePriceRow,
}
TABLES_OF_PLANE: Mapping[str, tuple[type[models.Model], ...]] = {
    "iron": (CostRow, AssetRow),
    "tokens": (TokenRow, TeamDayRow),
    "utilisation": (GpuUseRow, NodePriceRow),
}


def replace_day(source: Source, day: date, window: Window, rows: Iterable[Row]) -> int:
    """Let the rows of a day be exactly ``rows``; return how many they are.

    Must run in the transaction that also writes what the day's coverage is.
    """
    found: dict[type[Row], list[Row]] = {}
    for row in rows:
        found.setdefault(type(row), []).append(row)
    _forget_requests(source, found.get(Request, []))
    for table in TABLES_OF_PLANE[source.plane]:
        table._default_manager.filter(source=source, day=day).delete()  # noqa: SLF001
    for kind, told in found.items():
        _write(kind, told, source, day, window)
    return sum(map(len, found.values()))


def _forget_requests(source: Source, rows: list[Row]) -> None:
    """Delete requests that stand under another day: each counts once, whatever its day was."""
    kept = TokenRow.objects.filter(source=source)
    for same in persist.among(kept, [row.key for row in rows], "key"):
        same.delete()


def _write(kind: type[Row], rows: list[Row], source: Source, day: date, window: Window) -> None:
    # No instance of a model for each: for a month of requests they are most of the time.
    names = [one.name for one in fields(kind)]
    told = attrgetter(*names)
    same: tuple[Any, ...] = (source.pk, day)
    columns = [*names, "source_id", "day"]
    if kind is Cost:
        same += (window.start, window.end)
        columns += ["starts_at", "ends_at"]
    persist.insert(TABLES[kind], columns, [(*told(row), *same) for row in rows])


def keep_payload(recording: Recording) -> Payload | None:
    """Keep what was answered; equal answers are kept once. None where nothing was."""
    if not recording.exchanges:
        return None
    found, _made = Payload.objects.get_or_create(
        sha256=recording.fingerprint(),
        defaults={"body": recording.packed(), "size": recording.size},
    )
    return found
