"""Do the planes say the same? The eight checks R1 to R8 and why tokens and iron differ. Pure.

Source: finops.md 4.4 and the table of its chapter 5. A check compares ``a`` with ``b``; None is
not known, which is never the same as zero and makes no difference.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

OK, INFO, WARNING, CRITICAL = "ok", "info", "warning", "critical"
UNKNOWN = "unknown"
CAPACITY_TOLERANCE = Decimal("0.005")
LATENCY_TOLERANCE = Decimal("0.05")
SPEND_TOLERANCE = Decimal("0.01")
DRIFT_OK, DRIFT_WARNING = Decimal("0.05"), Decimal("0.15")
DRIFT_IRON, DRIFT_TOKENS = 50, 1_000_000  # less of either says nothing
MILLION = 1_000_000
SECONDS = 3600
PERCENT = 100


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison: what of, both values, whether they agree, and the likely cause."""

    id: str
    subject: str
    a: Decimal | None
    b: Decimal | None
    status: str
    cause: str = ""

    @property
    def difference(self) -> Decimal | None:
        """Return a - b, None where one of them is not known."""
        return None if self.a is None or self.b is None else self.a - self.b


@dataclass(frozen=True, slots=True)
class Spend:
    """What a day of a team of LiteLLM comes to."""

    tokens: int = 0
    spend: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Served:
    """A model or team of the memo: billable tokens, their cost, the iron they ran on."""

    name: str
    tokens: int
    token_cost: Decimal
    iron: Decimal


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a deployment serves at full load, and what a GPU-hour of it costs."""

    tokens_per_second: Decimal
    gpus: Decimal
    gpu_hour: Decimal

    @property
    def per_million(self) -> Decimal:
        """Return the price of a million tokens at full load."""
        return self.gpu_hour * self.gpus / (self.tokens_per_second * SECONDS) * MILLION


def capacity(cluster: str, inventory: Decimal, assets: Decimal | None) -> Check:
    """R1: GPU-hours of our inventory against those that OpenCost's assets had."""
    if assets is None:
        return Check("R1", cluster, inventory, assets, UNKNOWN)
    if abs(inventory - assets) <= CAPACITY_TOLERANCE * inventory:
        return Check("R1", cluster, inventory, assets, OK)
    cause = "assets_less" if assets < inventory else "assets_more"
    return Check("R1", cluster, inventory, assets, WARNING, cause)


def latency(held: Decimal, allocated: Decimal) -> Check:
    """R3: GPU-hours held against those in which work ran; what lies between is start-up."""
    slow = held and (held - allocated) / held > LATENCY_TOLERANCE
    if slow:
        return Check("R3", "", held, allocated, WARNING, "slow_start")
    return Check("R3", "", held, allocated, INFO)


def billed(lines: Decimal, cost: Decimal) -> Check:
    """R4: the lines of all bills against what everything cost, to the cent."""
    if lines == cost:
        return Check("R4", "", lines, cost, OK)
    return Check("R4", "", lines, cost, CRITICAL, "not_all_billed")


def hours_cause(
    scheduler: Decimal | None, opencost: Decimal | None, *, is_running: bool = False
) -> str:
    """R2: return who of both saw less, "" where one of them says nothing.

    Of a month that goes on OpenCost has the whole days, and we have today as well.
    """
    if scheduler is None or opencost is None:
        return ""
    if opencost > scheduler:
        return "opencost_more"
    return "not_read_yet" if is_running else "opencost_less"


def spends(requests: Mapping[str, Spend], sums: Mapping[str, Spend]) -> Iterator[Check]:
    """R5: requests of LiteLLM against its own daily sums, by day and team; tokens to the last.

    The requests win (finops.md 3.4); the difference keeps a month from being closed.
    """
    for key in sorted(requests.keys() | sums.keys()):
        ours, theirs = requests.get(key, Spend()), sums.get(key, Spend())
        agrees = abs(ours.spend - theirs.spend) <= SPEND_TOLERANCE
        if agrees and ours.tokens == theirs.tokens:
            continue
        cause = "lost_sums" if ours.spend >= theirs.spend else "lost_requests"
        yield Check("R5", key, ours.spend, theirs.spend, CRITICAL, cause)


def drift(served: Served, benchmark: Benchmark | None = None) -> Check:
    """R8: what tokens recover of the iron they ran on; ``cause`` says why they differ."""
    a, b = served.token_cost, served.iron
    if served.iron < DRIFT_IRON or served.tokens < DRIFT_TOKENS:
        lone = served.tokens and not served.iron
        return Check("R8", served.name, a, b, INFO, "attribution" if lone else "too_little")
    off = abs(served.token_cost / served.iron - 1)
    status = OK if off <= DRIFT_OK else WARNING if off <= DRIFT_WARNING else CRITICAL
    cause = "" if status == OK else cause_of(served, benchmark)
    return Check("R8", served.name, a, b, status, cause)


def cause_of(served: Served, benchmark: Benchmark | None) -> str:
    """Return price, utilisation or attribution: the factor that is farthest from 1.

    Recovery is declared price over price at full load (price) times tokens served over those at
    full load (utilisation). More than full load is iron or tokens of somebody else.
    """
    if benchmark is None or not served.tokens:
        return "no_benchmark"
    declared = served.token_cost / served.tokens * MILLION
    price = declared / benchmark.per_million
    use = served.tokens * benchmark.per_million / MILLION / served.iron
    if use > 1 + DRIFT_OK:
        return "attribution"
    return "price" if _distance(price) > _distance(use) else "utilisation"


def _distance(factor: Decimal) -> Decimal:
    return max(factor, 1 / factor) if factor else Decimal("Infinity")


def wanted_price(served: Served) -> Decimal | None:
    """Return what a million tokens would have to cost to recover the iron."""
    has_both = served.iron and served.tokens
    return served.iron / served.tokens * MILLION if has_both else None


def implied_throughput(benchmark: Benchmark, per_million: Decimal) -> Decimal:
    """Return the tokens per second that a price stands for."""
    return benchmark.gpu_hour * benchmark.gpus / (per_million * SECONDS) * MILLION


def load_of(served: Served, benchmark: Benchmark) -> Decimal:
    """Return how much of full load was served, in percent."""
    return PERCENT * served.tokens * benchmark.per_million / MILLION / served.iron
