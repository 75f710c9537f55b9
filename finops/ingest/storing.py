"""The only writer of what was loaded: a day of a source is replaced as a whole, or not at all."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import date
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

BATCH = 500
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
    found: dict[type[models.Model], list[Any]] = {}
    for row in rows:
        table = TABLES[type(row)]
        found.setdefault(table, []).append(table(**_columns(row, source, day, window)))
    _forget_requests(source, found.get(TokenRow, []))
    for table in TABLES_OF_PLANE[source.plane]:
        table._default_manager.filter(source=source, day=day).delete()  # noqa: SLF001
        table._default_manager.bulk_create(found.get(table, []), batch_size=BATCH)  # noqa: SLF001
    return sum(map(len, found.values()))


def _forget_requests(source: Source, rows: list[TokenRow]) -> None:
    """Delete requests that stand under another day: each counts once, whatever its day was."""
    for start in range(0, len(rows), BATCH):
        keys = [row.key for row in rows[start : start + BATCH]]
        TokenRow.objects.filter(source=source, key__in=keys).delete()


def _columns(row: Row, source: Source, day: date, window: Window) -> dict[str, Any]:
    # Not asdict: it copies every value, which for a month of requests is most of the time.
    columns = {one.name: getattr(row, one.name) for one in fields(row)}
    columns |= {"source": source, "day": day}
    if isinstance(row, Cost):
        columns |= {"starts_at": window.start, "ends_at": window.end}
    if isinstance(row, Request):
        columns["tags"] = list(row.tags)
    return columns


def keep_payload(recording: Recording) -> Payload | None:
    """Keep what was answered; equal answers are kept once. None where nothing was."""
    if not recording.exchanges:
        return None
    found, _made = Payload.objects.get_or_create(
        sha256=recording.fingerprint(),
        defaults={"body": recording.packed(), "size": recording.size},
    )
    return found
