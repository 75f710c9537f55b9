"""What OpenCost's ``/allocation`` says about a window, as rows. Pure.

Field drift of its versions is survived: unknown fields are passed over, every number is
optional. What a cost row is about is read from its name, whose parts are what was asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from finops.sources import numbers
from finops.sources.decoding import decoded
from finops.sources.failures import SAID, Note, SourceError
from finops.sources.opencost_shapes import (
    Allocation,
    AllocationRow,
    check_answer,
    check_window,
    known,
    text_of,
)
from finops.sources.rows import (
    IDLE,
    UNALLOCATED,
    UNMOUNTED,
    Cost,
    natural_key,
)
from finops.sources.windows import Window

TOTAL_TOLERANCE = Decimal("0.001")  # a row's numbers are rounded to five decimals each
_PLAIN = {
    "cluster": "cluster",
    "node": "node",
    "namespace": "namespace",
    "controllerKind": "controller_kind",
    "controller": "controller",
}


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What cost rows are told apart by, in the order in which OpenCost joins their names."""

    plain: tuple[str, ...] = ("cluster", "namespace", "controllerKind", "controller")
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()

    @property
    def aggregate(self) -> str:
        """The ``aggregate`` parameter."""
        return ",".join(
            (
                *self.plain,
                *(f"label:{key}" for key in self.labels),
                *(f"annotation:{key}" for key in self.annotations),
            )
        )

    @property
    def count(self) -> int:
        """How many parts a row's name has."""
        return len(self.plain) + len(self.labels) + len(self.annotations)


def sanitised(key: str) -> str:
    """Return a label key as Prometheus, and hence OpenCost, writes it."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in key)


@dataclass(slots=True)
class _Unknown:
    """Which costs and amounts a source left open, and what else a reader should know."""

    fields: set[str] = field(default_factory=set)
    rows: int = 0
    differing: int = 0

    def notes(self, warnings: Iterable[str]) -> tuple[Note, ...]:
        found = [Note("SOURCE_WARNED", {"said": text[:SAID]}) for text in warnings]
        if self.rows:
            names = ", ".join(sorted(self.fields))
            found.append(Note("SOURCE_UNKNOWN_NUMBERS", {"rows": self.rows, "fields": names}))
        if self.differing:
            found.append(Note("SOURCE_TOTALS_DIFFER", {"rows": self.differing}))
        return tuple(found)


def cost_rows(
    body: bytes, window: Window, dimensions: Dimensions, cluster: str = ""
) -> tuple[tuple[Cost, ...], tuple[Note, ...]]:
    """Return the rows that ``/allocation`` gave for ``window``, and what they leave open.

    ``cluster`` is the name of the cluster where rows do not say it.

    Raises:
        SourceError: no data (never a zero), another window than was asked for, NaN or a cut body.
    """
    envelope = decoded(body, Allocation)
    sets = [one for one in envelope.data or () if one]
    check_answer(envelope)
    if not sets:
        raise SourceError("SOURCE_NO_DATA")
    unknown, found = _Unknown(), []
    for rows in sets:
        for name, row in rows.items():
            check_window(row.window, window)
            about = _about(name, row.properties or {}, dimensions)
            about["cluster"] = about["cluster"] or cluster
            found.append(_cost(row, about, window, unknown))
    if not any(not row.is_idle for row in found):
        raise SourceError("SOURCE_NO_DATA")
    warnings = [envelope.warning] if envelope.warning else []
    return added_up(found), unknown.notes(warnings)


def added_up(rows: Iterable[Cost]) -> tuple[Cost, ...]:
    """Return rows of parts of a day as rows of the day: one for each key, by key."""
    found: dict[str, Cost] = {}
    for row in rows:
        other = found.get(row.key)
        found[row.key] = row if other is None else _sum(other, row)
    return tuple(found[key] for key in sorted(found))


_ADDED = (
    *("gpu_hours", "cpu_hours", "gib_hours", "gpu_cost", "cpu_cost", "ram_cost"),
    *("pv_cost", "network_cost", "lb_cost", "other_cost"),
)


def _sum(one: Cost, other: Cost) -> Cost:
    hours = one.gpu_hours + other.gpu_hours
    known = one.gpu_efficiency is not None and other.gpu_efficiency is not None and hours
    efficiency = None
    if known and one.gpu_efficiency is not None and other.gpu_efficiency is not None:
        busy = one.gpu_efficiency * one.gpu_hours + other.gpu_efficiency * other.gpu_hours
        efficiency = numbers.hours(busy / hours)
    return replace(
        one,
        first_at=min(one.first_at, other.first_at),
        last_at=max(one.last_at, other.last_at),
        gpu_efficiency=efficiency,
        **{name: getattr(one, name) + getattr(other, name) for name in _ADDED},
    )


def _cost(row: AllocationRow, about: dict[str, Any], window: Window, unknown: _Unknown) -> Cost:
    amounts, open_fields = _amounts(row)
    if open_fields:
        unknown.fields |= open_fields
        unknown.rows += 1
    labels, annotations = about.pop("labels"), about.pop("annotations")
    identity = [about.get(part, "") for part in _PLAIN.values()]
    marks = [
        f"{kind}{key}={value}"
        for kind, some in (("l", labels), ("a", annotations))
        for key, value in sorted(some.items())
    ]
    efficiency = row.gpu_efficiency
    cost = Cost(
        key=natural_key(*identity, *marks),
        first_at=min(max(row.start or window.start, window.start), window.end),
        last_at=max(min(row.end or window.end, window.end), window.start),
        labels=labels,
        annotations=annotations,
        gpu_efficiency=None if efficiency is None else numbers.hours(efficiency),
        **about,
        **amounts,
    )
    if row.total_cost is not None:
        off = abs(row.total_cost - cost.total_cost)
        unknown.differing += off > TOTAL_TOLERANCE + abs(row.total_cost) / 1_000_000
    return cost


def _amounts(row: AllocationRow) -> tuple[dict[str, Any], set[str]]:
    """Return the numbers of a row, and which of them it left open (null is unknown, not 0)."""
    needed = ("gpu_hours", "gpu_cost", "cpu_cost", "ram_cost", "pv_cost", "network_cost")
    open_fields = {name for name in needed if getattr(row, name) is None}
    costs: dict[str, Any] = {
        f"{name}_cost": numbers.cost(
            known(getattr(row, f"{field_name}_cost"))
            + known(getattr(row, f"{field_name}_cost_adjustment"))
        )
        for name, field_name in (
            *((name, name) for name in ("gpu", "cpu", "ram", "pv", "network")),
            ("lb", "load_balancer"),
        )
    }
    costs["other_cost"] = numbers.cost(known(row.shared_cost) + known(row.external_cost))
    hours = {
        "gpu_hours": numbers.hours(known(row.gpu_hours)),
        "cpu_hours": numbers.hours(known(row.cpu_core_hours)),
        "gib_hours": numbers.gib(known(row.ram_byte_hours)),
    }
    return costs | hours, open_fields


def _about(name: str, properties: Mapping[str, Any], dimensions: Dimensions) -> dict[str, Any]:
    """Return what a row is about. Its name's parts say it, where they can be told apart."""
    parts = name.split("/")
    for special in (IDLE, UNMOUNTED):
        if special in parts:
            return _special(special, properties)
    if len(parts) != dimensions.count or name == UNALLOCATED:
        return _by_properties(properties, dimensions)
    plain, marks = parts[: len(dimensions.plain)], parts[len(dimensions.plain) :]
    about: dict[str, Any] = _by_properties(properties, Dimensions())
    for key, value in zip(dimensions.plain, plain, strict=True):
        about[_PLAIN[key]] = _named(key, value)
    cut = len(dimensions.labels)
    about["labels"] = _marks(dimensions.labels, marks[:cut])
    about["annotations"] = _marks(dimensions.annotations, marks[cut:])
    return about


def _special(namespace: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    about = {"cluster": text_of(properties, "cluster"), "node": text_of(properties, "node")}
    return {**about, "namespace": namespace, "labels": {}, "annotations": {}}


def _named(dimension: str, value: str) -> str:
    """Return a part of a name; only a namespace that is missing keeps its mark."""
    if value != UNALLOCATED or dimension == "namespace":
        # A controller's name carries its kind: ``deployment:api``.
        return value.rpartition(":")[2] if dimension == "controller" else value
    return ""


def _marks(keys: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    return {
        key: value
        for key, value in zip(keys, values, strict=True)
        if value not in {UNALLOCATED, ""}
    }


def _by_properties(properties: Mapping[str, Any], dimensions: Dimensions) -> dict[str, Any]:
    """Return what the members of a row have in common."""
    about: dict[str, Any] = {ours: text_of(properties, theirs) for theirs, ours in _PLAIN.items()}
    about["controller_kind"] = text_of(properties, "controllerKind")
    about["namespace"] = about["namespace"] or UNALLOCATED
    for name, keys in (("labels", dimensions.labels), ("annotations", dimensions.annotations)):
        given = properties.get(name)
        some = given if isinstance(given, dict) else {}
        about[name] = {key: str(some[key]) for key in keys if some.get(key) not in (None, "")}
    return about
