"""The only writer of what was loaded: a day of a source is replaced as a whole, or not at all."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

from django.db import models

from finops.models import AssetRow, CostRow, Payload, Source
from finops.sources.recording import Recording
from finops.sources.rows import Asset, Cost, Row
from finops.sources.windows import Window

BATCH = 500
TABLES: Mapping[type[Row], type[models.Model]] = {Cost: CostRow, Asset: AssetRow}
TABLES_OF_PLANE: Mapping[str, tuple[type[models.Model], ...]] = {"iron": (CostRow, AssetRow)}


def replace_day(source: Source, day: date, window: Window, rows: Iterable[Row]) -> int:
    """Let the rows of a day be exactly ``rows``; return how many they are.

    Must run in the transaction that also writes what the day's coverage is.
    """
    found: dict[type[models.Model], list[Any]] = {}
    for row in rows:
        table = TABLES[type(row)]
        found.setdefault(table, []).append(table(**_columns(row, source, day, window)))
    for table in TABLES_OF_PLANE[source.plane]:
        table._default_manager.filter(source=source, day=day).delete()  # noqa: SLF001
        table._default_manager.bulk_create(found.get(table, []), batch_size=BATCH)  # noqa: SLF001
    return sum(map(len, found.values()))


def _columns(row: Row, source: Source, day: date, window: Window) -> dict[str, Any]:
    columns = asdict(row) | {"source": source, "day": day}
    if isinstance(row, Cost):
        columns |= {"starts_at": window.start, "ends_at": window.end}
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
