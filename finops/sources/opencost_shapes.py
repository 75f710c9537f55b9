"""The shapes of what OpenCost answers: the fields that are read, all of them optional. Pure."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from finops.sources.failures import SAID, SourceError
from finops.sources.rows import ZERO
from finops.sources.windows import Window

OK = 200


class AllocationRow(msgspec.Struct, rename="camel"):
    """A row of ``/allocation``: the fields that are read."""

    name: str = ""
    properties: dict[str, Any] | None = None
    window: "Span | None" = None
    start: datetime | None = None
    end: datetime | None = None
    gpu_hours: Decimal | None = None
    cpu_core_hours: Decimal | None = None
    ram_byte_hours: Decimal | None = None
    gpu_cost: Decimal | None = None
    cpu_cost: Decimal | None = None
    ram_cost: Decimal | None = None
    pv_cost: Decimal | None = None
    network_cost: Decimal | None = None
    load_balancer_cost: Decimal | None = None
    gpu_cost_adjustment: Decimal | None = None
    cpu_cost_adjustment: Decimal | None = None
    ram_cost_adjustment: Decimal | None = None
    pv_cost_adjustment: Decimal | None = None
    network_cost_adjustment: Decimal | None = None
    load_balancer_cost_adjustment: Decimal | None = None
    shared_cost: Decimal | None = None
    external_cost: Decimal | None = None
    total_cost: Decimal | None = None
    gpu_efficiency: Decimal | None = None


class Span(msgspec.Struct):
    """A window as OpenCost writes it."""

    start: datetime
    end: datetime


class Envelope(msgspec.Struct):
    """What stands around every answer."""

    code: int | None = None
    message: str | None = None
    warning: str | None = None


class Allocation(Envelope):
    """``/allocation``: sets of rows by name; None or {} is a set with nothing."""

    data: list[dict[str, AllocationRow] | None] | None = None


class AssetEntry(msgspec.Struct, rename="camel"):
    """An entry of ``/assets``; a disk has bytes where a node has cores."""

    type: str = ""
    properties: dict[str, Any] | None = None
    window: Span | None = None
    cpu_core_hours: Decimal | None = None
    ram_byte_hours: Decimal | None = None
    byte_hours: Decimal | None = None
    gpu_hours: Decimal | None = msgspec.field(default=None, name="GPUHours")
    gpu_cost: Decimal | None = None
    cpu_cost: Decimal | None = None
    ram_cost: Decimal | None = None
    total_cost: Decimal | None = None


class Assets(Envelope):
    """``/assets``: machines and disks by name."""

    data: dict[str, AssetEntry | None] | None = None


class PriceList(Envelope):
    """``/allNodePricing``: prices by class of machine, as texts."""

    data: dict[str, dict[str, str | None] | None] | None = None


def check_answer(envelope: Envelope) -> None:
    """Refuse an answer that says itself that it failed, whatever its HTTP status."""
    if envelope.code is not None and envelope.code != OK:
        said = " ".join((envelope.message or "").split())[:SAID]
        raise SourceError("SOURCE_ANSWERED", status=envelope.code, said=said)


def check_window(span: Span | None, window: Window) -> None:
    """Refuse a set of another window: a shifted or unclipped one would count time twice."""
    if span is not None and (span.start, span.end) != (window.start, window.end):
        raise SourceError(
            "SOURCE_WRONG_WINDOW",
            asked=f"{window.start:%Y-%m-%d %H:%M} - {window.end:%Y-%m-%d %H:%M}",
            answered=f"{span.start:%Y-%m-%d %H:%M} - {span.end:%Y-%m-%d %H:%M}",
        )


def known(number: Decimal | None) -> Decimal:
    """Return a number, 0 where it is left open."""
    return ZERO if number is None else number


def text_of(properties: Mapping[str, Any], key: str) -> str:
    """Return a property that is a text, else ""."""
    value = properties.get(key)
    return value if isinstance(value, str) else ""
