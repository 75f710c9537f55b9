"""What may become of a reading: stored, stored as a part, or kept until somebody has judged it.

A reading that takes something away, or rests on prices that nobody declared, is never applied
by itself (finops.md 1.7, 4.6, T1).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from django.conf import settings

from finops.allocation.facts import Facts, Period, ResolvedPrice, instant
from finops.allocation.facts import Price as PriceFact
from finops.allocation.findings import Finding
from finops.allocation.money import RATE_PLACES, exact, round_half_up
from finops.allocation.price_check import price_anomalies
from finops.ingest.capacity import capacity_by_node, capacity_hours, flavor_by_node
from finops.models import Coverage, Source
from finops.models.sources import Stored
from finops.price_facts import price_facts
from finops.sources.failures import Note, Numbers
from finops.sources.rows import ZERO, Asset, GpuUse, NodePrice, Reading
from finops.sources.windows import Window
from finops.specs import EVERY_FLAVOR
from gpuplatform.common.money import plain, rounded

WHOLE = Decimal("0.99")  # of the capacity; less is a part (finops.md 1.7)
# Rows are rounded to five decimals; what is less than this is no loss.
ROUNDING = {"gpu_hours": Decimal("0.01"), "cost": Decimal("0.01")}
# What makes a day a part, though its rows are used.
INCOMPLETE = frozenset(
    {
        "SOURCE_WARNED",
        "SOURCE_UNKNOWN_NUMBERS",
        "SOURCE_EMPTY_PARTS",
        "SOURCE_NO_ASSETS",
        "SOURCE_PARTLY",
        "SOURCE_PAGES_SHIFTED",
        "SOURCE_LOG_BEGINS",
        "SOURCE_LOG_IS_OFF",
        "SOURCE_HOLES",
    }
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to become of a reading. ``code`` "" lets it be stored as ``stored``."""

    stored: str
    code: str = ""
    numbers: Numbers = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    ratio: Decimal | None = None


def judge(reading: Reading, window: Window, source: Source, coverage: Coverage) -> Verdict:
    """Return what is to become of a reading of a day."""
    seen, there = _capacity(reading, window, source)
    notes = (*reading.notes, *_partly(seen, there))
    ratio = _ratio(seen, there)
    is_part = any(note.code in INCOMPLETE for note in notes)
    stored = Stored.PARTIAL if is_part else Stored.LOADED
    doubts = (
        *_smaller(reading.measures, _stored_measures(coverage)),
        *_less_complete(is_part, coverage),
        *_wrong_prices(reading, window, source),
    )
    if doubts:
        return Verdict(stored, doubts[0].code, doubts[0].numbers, notes, ratio)
    return Verdict(stored, notes=notes, ratio=ratio)


# ---- against what is stored ---------------------------------------------------------------------
def _stored_measures(coverage: Coverage) -> Mapping[str, Decimal]:
    if coverage.applied is None:
        return {}
    return {name: Decimal(text) for name, text in coverage.applied.measures.items()}


def _smaller(found: Mapping[str, Decimal], stored: Mapping[str, Decimal]) -> Iterator[Note]:
    """Yield what a reading would take away; in the order in which measures are named."""
    for measure, amount in found.items():
        before = stored.get(measure, amount)
        if before - amount > ROUNDING.get(measure, ZERO):
            numbers = {
                "measure": measure,
                "found": plain(amount, 0, 6),
                "stored": plain(before, 0, 6),
            }
            yield Note("SOURCE_SMALLER", numbers)


def _less_complete(is_part: bool, coverage: Coverage) -> Iterator[Note]:
    if is_part and coverage.stored == Stored.LOADED:
        yield Note("SOURCE_LESS_COMPLETE")


# ---- against the inventory ----------------------------------------------------------------------
def _capacity(reading: Reading, window: Window, source: Source) -> tuple[Decimal, Decimal]:
    """Return the GPU-hours of capacity that the source saw, and those that were there.

    Where several sources tell of machines, only the nodes that this one names are compared.
    """
    by_node = list(_seen(reading))
    if not by_node:
        return ZERO, ZERO
    there = capacity_by_node(window)
    if Source.objects.filter(plane=source.plane, enabled=True).count() > 1:
        named = {node for node, _hours in by_node}
        there = {node: hours for node, hours in there.items() if node in named}
    return sum((hours for _node, hours in by_node), ZERO), capacity_hours(there)


def _seen(reading: Reading) -> Iterator[tuple[str, Decimal]]:
    """Yield nodes with the GPU-hours that a source saw: there, or sampled."""
    for row in reading.rows:
        if isinstance(row, Asset) and row.gpu_hours:
            yield row.name, row.gpu_hours
        elif isinstance(row, GpuUse):
            yield row.node, row.sampled_gpu_hours


def _ratio(seen: Decimal, there: Decimal) -> Decimal | None:
    return min(rounded(seen / there, 6), Decimal(1)) if there else None


def _partly(seen: Decimal, there: Decimal) -> Iterator[Note]:
    if there and seen < WHOLE * there:
        percent = plain(100 * seen / there, 0, 1)
        numbers = {"seen": plain(seen, 0, 2), "there": plain(there, 0, 2), "percent": percent}
        yield Note("SOURCE_PARTLY", numbers)


# ---- against the prices -------------------------------------------------------------------------
def _wrong_prices(reading: Reading, window: Window, source: Source) -> Iterator[Note]:
    """Yield the machines whose price is not the declared one, with the cause.

    Only GPUs whose one price was in force the whole window can be compared: of two prices in a
    day, the source shows a mean.
    """
    if source.currency != settings.CURRENCY:
        return
    resolved = list(_resolved(reading, window))
    period = Period(instant(window.start), instant(window.end), currency=source.currency)
    flavors = {row.flavor for row in resolved}
    declared = list(_constant(price_facts(period, flavors)))
    priced = {price.flavor for price in declared}
    checked = tuple(row for row in resolved if row.flavor in priced)
    facts = Facts(period, teams=(), prices=tuple(declared), resolved_prices=checked)
    for found in sorted(price_anomalies(facts), key=lambda one: sorted(one.subject.items())):
        yield _anomaly(found)


def _constant(prices: Iterable[PriceFact]) -> Iterator[PriceFact]:
    """Yield the prices of flavors that have just one over the window."""
    by_flavor: dict[str, list[PriceFact]] = {}
    for price in prices:
        by_flavor.setdefault(price.flavor, []).append(price)
    for found in by_flavor.values():
        if len({price.gpu_hour for price in found}) == 1:
            yield found[0]


def _resolved(reading: Reading, window: Window) -> Iterator[ResolvedPrice]:
    """Yield the price of a GPU-hour on each node, and in the list where one flavor is there."""
    flavors = flavor_by_node(window)
    for row in reading.rows:
        if isinstance(row, Asset) and row.gpu_hours:
            price = rounded(row.gpu_cost / row.gpu_hours, 8)
            flavor = flavors.get(row.name, EVERY_FLAVOR)
            yield ResolvedPrice(row.cluster, row.name, flavor, exact(price))
        elif isinstance(row, NodePrice):
            flavor = flavors.get(row.node, EVERY_FLAVOR)
            yield ResolvedPrice("", row.node, flavor, exact(row.gpu_hour))
    known = set(flavors.values()) or {EVERY_FLAVOR}
    for listed in reading.price_list:
        if listed.gpu_hour is not None and len(known) == 1:
            yield ResolvedPrice("", listed.name, min(known), exact(listed.gpu_hour))


def _anomaly(found: Finding) -> Note:
    numbers: dict[str, str | int] = {
        name: plain(round_half_up(value, RATE_PLACES)) for name, value in found.numbers.items()
    }
    return Note(
        "SOURCE_PRICE_ANOMALY",
        {"node": found.subject["node"], "cause": found.cause or "", **numbers},
    )
