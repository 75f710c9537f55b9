"""What machines and disks OpenCost saw, and the prices it was told. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from finops.sources import numbers
from finops.sources.decoding import decoded
from finops.sources.failures import SourceError
from finops.sources.opencost_shapes import (
    AssetEntry,
    Assets,
    PriceList,
    check_answer,
    check_window,
    known,
    text_of,
)
from finops.sources.rows import Asset, ListPrice, natural_key
from finops.sources.windows import Window


def asset_rows(body: bytes, window: Window, cluster: str = "") -> tuple[Asset, ...]:
    """Return what ``/assets`` gave for ``window``, by key.

    Raises:
        SourceError: another window, NaN, a cut body, or an answer that says it failed.
    """
    envelope = decoded(body, Assets)
    check_answer(envelope)
    found = []
    for name, row in (envelope.data or {}).items():
        if row is not None:
            check_window(row.window, window)
            found.append(_asset(name, row, cluster))
    return tuple(sorted(found, key=lambda asset: asset.key))


def _asset(name: str, row: AssetEntry, cluster: str) -> Asset:
    properties = row.properties or {}
    bytes_ = row.ram_byte_hours if row.ram_byte_hours is not None else row.byte_hours
    return Asset(
        key=natural_key(name),
        kind=row.type,
        cluster=text_of(properties, "cluster") or cluster,
        name=text_of(properties, "name") or name.rpartition("/")[2],
        gpu_hours=numbers.hours(known(row.gpu_hours)),
        cpu_hours=numbers.hours(known(row.cpu_core_hours)),
        gib_hours=numbers.gib(known(bytes_)),
        gpu_cost=numbers.cost(known(row.gpu_cost)),
        cpu_cost=numbers.cost(known(row.cpu_cost)),
        ram_cost=numbers.cost(known(row.ram_cost)),
        total_cost=numbers.cost(known(row.total_cost)),
    )


def assets_added_up(rows: Iterable[Asset]) -> tuple[Asset, ...]:
    """Return assets of parts of a day as assets of the day."""
    amounts = ("gpu_hours", "cpu_hours", "gib_hours", "gpu_cost", "cpu_cost", "ram_cost")
    found: dict[str, Asset] = {}
    for row in rows:
        other = found.get(row.key)
        found[row.key] = (
            row
            if other is None
            else replace(
                other,
                **{
                    name: getattr(other, name) + getattr(row, name)
                    for name in (*amounts, "total_cost")
                },
            )
        )
    return tuple(found[key] for key in sorted(found))


def list_prices(body: bytes) -> tuple[ListPrice, ...]:
    """Return the price list of ``/allNodePricing``: texts, by the hour; an empty one is none.

    It is what OpenCost was told, not what its nodes resolve to (finops.md 1.6).
    """
    envelope = decoded(body, PriceList)
    check_answer(envelope)
    return tuple(
        ListPrice(
            name,
            gpu_hour=_price(entry.get("GPU")),
            cpu_hour=_price(entry.get("CPU")),
            gib_hour=_price(entry.get("RAM")),
        )
        for name, entry in sorted((envelope.data or {}).items())
        if entry is not None
    )


def _price(text: str | None) -> Decimal | None:
    if not text:
        return None
    try:
        return numbers.cost(Decimal(text))
    except ArithmeticError as error:
        raise SourceError("SOURCE_WRONG_SHAPE", problem=f"{text[:40]!r} is no price") from error
