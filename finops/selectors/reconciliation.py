"""The eight checks of a month, read from rows: page, file, REST and the close board show these."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Exists, F, Max, Q, Sum
from django.db.models.functions import TruncDate

from finops.loader import window_of
from finops.metered_facts import rows_inside
from finops.models import (
    AssetRow,
    BillingPeriod,
    BillLine,
    CostRow,
    Finding,
    Price,
    TeamDayRow,
    TokenRow,
)
from finops.models import Mapping as CostMapping
from finops.models.mappings import MappingKind
from finops.models.prices import PriceUnit
from finops.reconciling import (
    CRITICAL,
    WARNING,
    Benchmark,
    Check,
    Served,
    Spend,
    billed,
    capacity,
    drift,
    hours_cause,
    latency,
    load_of,
    spends,
    wanted_price,
)
from finops.specs import EVERY_FLAVOR
from gpuplatform.common import clock
from gpuplatform.common.money import rounded
from gpuplatform.common.questions import fetch
from queues.access import Actor
from scheduling.models import CapacityInterval, UsageInterval

CHECK_COLUMNS = (
    *("period", "check", "subject", "a", "b", "difference", "status", "cause"),
    *("wanted_price", "load_percent"),
)
# Findings of a bill that are checks: which one, and the numbers that are compared.
OF_FINDINGS: Mapping[str, tuple[str, str, str]] = {
    "hours_differ": ("R2", "scheduler", "opencost"),
    "zero_spend": ("R6", "amount", ""),
    "spend_mismatch": ("R6", "spend", "listed"),
    "price_anomaly": ("R7", "declared", "resolved"),
}
STATUS = {"info": "info", "warning": "warning", "critical": "critical"}
DAY = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)
HOUR = 3_600_000_000  # microseconds
NOTHING = Decimal(0)
PLACES = 6


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check; of a drift also the price that would recover the iron, and the load in percent."""

    check: Check
    wanted_price: Decimal | None = None
    load_percent: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """All checks of a month; ``silent`` are those without a row, and whether they ran."""

    period: BillingPeriod
    rows: tuple[CheckRow, ...]
    silent: tuple[tuple[str, bool], ...] = ()

    @property
    def critical(self) -> int:
        """Return how many checks are critical."""
        return sum(row.check.status == CRITICAL for row in self.rows)

    @property
    def differing(self) -> int:
        """Return how many checks differ without being critical."""
        return sum(row.check.status == WARNING for row in self.rows)


def reconciliation(actor: Actor, period: BillingPeriod | None) -> Reconciliation | None:
    """Return the checks of a month with bills, to those who see all of them; else None."""
    if period is None or not actor.may_see_bills:
        return None
    rows = [
        *map(CheckRow, _capacity(period)),
        *map(CheckRow, _of_findings(period)),
        CheckRow(_latency(period)),
        CheckRow(_billed(period)),
        *map(CheckRow, spend_checks(period)),
        *_drift(period),
    ]
    rows.sort(key=lambda row: (row.check.id, row.check.subject))
    return Reconciliation(period, tuple(rows), tuple(_silent(period, rows)))


def _silent(period: BillingPeriod, rows: Sequence[CheckRow]) -> Iterator[tuple[str, bool]]:
    """Yield the checks that have no row, and whether there was anything to compare."""
    shown = {row.check.id for row in rows}
    days = Q(day__gte=period.starts_at.date(), day__lt=period.ends_at.date())
    has_rows = {
        "R2": Exists(CostRow.objects.filter(days)),
        "R5": Exists(TeamDayRow.objects.filter(days)),
        "R6": Exists(TokenRow.objects.filter(days)),
        "R7": Exists(AssetRow.objects.filter(days)),
    }
    compared = {
        "R1": bool(period.memo.get("gpu_hours")),
        **BillingPeriod.objects.filter(pk=period.pk).values(**has_rows)[0],
        "R8": bool(period.memo.get("models") or period.memo.get("teams")),
    }
    for identity, is_there in compared.items():
        if identity not in shown:
            yield identity, bool(is_there)


def check_cells(period: BillingPeriod, row: CheckRow) -> dict[str, Any]:
    """Return a check as files and answers have it."""
    check = row.check
    return {
        "period": period.name,
        "check": check.id,
        "subject": check.subject,
        "a": _told(check.a),
        "b": _told(check.b),
        "difference": _told(check.difference),
        "status": check.status,
        "cause": check.cause,
        "wanted_price": _told(row.wanted_price),
        "load_percent": _told(row.load_percent),
    }


def _told(number: Decimal | None) -> Decimal | None:
    """Return a number with at most the decimals that files have (product.md 5)."""
    if number is None:
        return None
    short = rounded(number, PLACES)
    return number if number == short else short


def spend_checks(period: BillingPeriod) -> list[Check]:
    """Return R5 of the whole UTC days inside a month, of sources that have daily sums."""
    first = _next_midnight(period.starts_at)
    after = period.ends_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = Q(day__gte=first.date(), day__lt=after.date())
    sums = _by_day(
        TeamDayRow.objects.filter(days).values_list("source__name", "day", "team_id"),
        F("prompt_tokens") + F("completion_tokens"),
    )
    if not sums:
        return []
    with_sums = {key.partition(" ")[0] for key in sums}
    rows = TokenRow.objects.filter(
        at__gte=first, at__lt=after, failed=False, source__name__in=with_sums
    ).annotate(utc_day=TruncDate("at", tzinfo=UTC))
    requests = _by_day(
        rows.values_list("source__name", "utc_day", "team_id"),
        F("prompt_tokens") + F("completion_tokens"),
    )
    return list(spends(requests, sums))


def _by_day(rows: Any, tokens: Any) -> dict[str, Spend]:
    found = rows.order_by().annotate(all_tokens=Sum(tokens), all_spend=Sum("spend"))
    return {
        f"{source} {day} {team or '-'}": Spend(count or 0, Decimal(spend or 0))
        for source, day, team, count, spend in found
    }


def _next_midnight(at: datetime) -> datetime:
    local = at.astimezone(UTC)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight if midnight == local else midnight + DAY


# ---- one function for each check ---------------------------------------------------------------
def _capacity(period: BillingPeriod) -> Iterator[Check]:
    """Compare over the same time: of a running month, up to the last day that a source has."""
    rows = AssetRow.objects.filter(day__gte=period.starts_at.date(), day__lt=period.ends_at.date())
    sums = rows.order_by().values_list("cluster")
    assets = {
        cluster: (hours, last)
        for cluster, hours, last in sums.annotate(hours=Sum("gpu_hours"), last=Max("day"))
    }
    is_running = period.ends_at > clock.now()
    for row in period.memo.get("gpu_hours", ()):
        inventory, seen = Decimal(row["capacity"]), assets.get(row["cluster"])
        if is_running and seen:
            inventory = _inventory(period, seen[1])
        yield capacity(row["cluster"], inventory, seen[0] if seen else None)


def _inventory(period: BillingPeriod, last: date) -> Decimal:
    """Return the GPU-hours that stood there from a month's beginning to the end of a UTC day."""
    until = min(period.ends_at, datetime.combine(last, time(), UTC) + DAY)
    rows = rows_inside(CapacityInterval.objects.order_by(), window_of(period))
    return sum(
        (
            amount * _hours(max(start, period.starts_at), min(end or until, until))
            for amount, start, end in rows.values_list("amount", "started_at", "ended_at")
        ),
        NOTHING,
    )


def _of_findings(period: BillingPeriod) -> Iterator[Check]:
    for finding in Finding.objects.filter(period=period, code__in=OF_FINDINGS):
        identity, *names = OF_FINDINGS[finding.code]
        a, b = (_number(finding, name) for name in names)
        is_hours, is_running = identity == "R2", period.ends_at > clock.now()
        cause = hours_cause(a, b, is_running=is_running) if is_hours else finding.code
        yield Check(identity, finding.subject, a, b, STATUS[finding.severity], cause)


def _number(finding: Finding, name: str) -> Decimal | None:
    return Decimal(finding.numbers[name]) if name in finding.numbers else None


def _latency(period: BillingPeriod) -> Check:
    """Held GPU-hours until now, and those after the admission's pods had started."""
    held = allocated = (
        0  # GPUs x microseconds: exact, and of a hundred thousand rows quickly summed
    )
    until = min(clock.now(), period.ends_at)  # what goes on has not been held in the future
    rows = rows_inside(UsageInterval.objects.order_by(), window_of(period)).values_list(
        "amount", "started_at", "ended_at", "admission__started_at"
    )
    for amount, start, end, ran in fetch(rows):
        first, last = max(start, period.starts_at), min(end or until, until)
        if first < last:
            held += amount * ((last - first) // MICROSECOND)
            ready = first if ran is None or ran <= first else ran
            allocated += amount * ((last - ready) // MICROSECOND) if ready < last else 0
    return latency(Decimal(held) / HOUR, Decimal(allocated) / HOUR)


def _hours(start: datetime, end: datetime) -> Decimal:
    return Decimal(max(0, (end - start) // MICROSECOND)) / HOUR


def _billed(period: BillingPeriod) -> Check:
    lines = BillLine.objects.filter(bill__period=period).order_by()
    amounts = lines.values_list("amount", flat=True).iterator()
    return billed(sum(amounts, Decimal("0.00")), period.total_cost)


def _drift(period: BillingPeriod) -> Iterator[CheckRow]:
    benchmarks = _benchmarks(period)
    for part, name in (("models", "model_group"), ("teams", "team")):
        for row in period.memo.get(part, ()):
            served = Served(
                f"{name}={row[name]}",
                row["tokens"],
                Decimal(row["token_cost"]),
                Decimal(row["iron_direct"]),
            )
            benchmark = benchmarks.get(row[name]) if part == "models" else None
            is_known = benchmark is not None and bool(served.iron)
            yield CheckRow(
                drift(served, benchmark),
                wanted_price(served),
                load_of(served, benchmark) if is_known and benchmark else None,
            )


def _benchmarks(period: BillingPeriod) -> dict[str, Benchmark]:
    """Return what each model's last deployment of the month serves, at what its GPU-hours cost."""
    rows = CostMapping.objects.filter(
        Q(valid_to=None) | Q(valid_to__gt=period.starts_at),
        kind=MappingKind.DEPLOYMENT,
        valid_from__lt=period.ends_at,
        tokens_per_second__gt=0,
        gpus__gt=0,
    ).order_by("valid_from")
    rates = _rates(period, {row.namespace for row in rows})
    found: dict[str, Benchmark] = {}
    for row in rows:
        rate = rates.get(row.namespace)
        if row.tokens_per_second and row.gpus and rate:
            found[row.value] = Benchmark(row.tokens_per_second, row.gpus, rate)
    return found


def _rates(period: BillingPeriod, namespaces: Collection[str]) -> dict[str, Decimal]:
    """Return what a GPU-hour cost on average in each namespace, by the flavors that it held.

    Where we metered nothing there (usage that OpenCost tells), only one price of all is known
    to be theirs.
    """
    until = min(clock.now(), period.ends_at)
    prices = _prices(period)
    hours: dict[str, Decimal] = defaultdict(Decimal)
    cost: dict[str, Decimal] = defaultdict(Decimal)
    held = rows_inside(UsageInterval.objects.order_by(), window_of(period))
    for row in held.filter(namespace__in=namespaces):
        first, last = max(row.started_at, period.starts_at), min(row.ended_at or until, until)
        for price in prices.get(row.flavor) or prices.get(EVERY_FLAVOR, []):
            part = row.amount * _hours(
                max(first, price.valid_from), min(last, price.valid_to or last)
            )
            hours[row.namespace] += part
            cost[row.namespace] += part * price.amount
    amounts = {price.amount for own in prices.values() for price in own}
    only = amounts.pop() if len(amounts) == 1 else None
    found = {name: cost[name] / hours[name] if hours[name] else only for name in namespaces}
    return {name: rate for name, rate in found.items() if rate}


def _prices(period: BillingPeriod) -> dict[str, list[Price]]:
    """Return the prices of GPU-hours in the month, by flavor."""
    rows = Price.objects.filter(
        Q(valid_to=None) | Q(valid_to__gt=period.starts_at),
        unit=PriceUnit.GPU_HOUR,
        valid_from__lt=period.ends_at,
    )
    found: dict[str, list[Price]] = defaultdict(list)
    for row in rows:
        found[row.subject].append(row)
    return found
