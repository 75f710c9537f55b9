"""The facts a bill is made of: frozen, checked when built, names as in conformance FORMAT.md 1.

Windows are half-open ``[start, end)``; ``end=None`` goes on past the period. Instants must
be aware and are kept in UTC, because Python subtracts two datetimes of one zone by wall clock.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from finops.allocation.money import InvalidFieldError, require_count, require_decimal

Holding = Literal["nominal", "borrowed", "unmanaged"]
IdlePolicy = Literal["separate", "hidden", "proportional", "even", "owner", "owner_net"]
IdleScope = Literal["flavor", "cluster"]


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open stretch of time in UTC."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Period:
    """What is billed together; days are days of ``time_zone``.

    For a bill "so far" pass a period that ends now: this package has no clock.
    """

    start: datetime
    end: datetime
    time_zone: str = "UTC"
    currency: str = "EUR"

    def __post_init__(self) -> None:
        _keep_window_in_utc(self)
        if not self.currency:
            raise InvalidFieldError("currency", "must not be empty")
        try:
            ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InvalidFieldError("time_zone", f"unknown: {self.time_zone!r}") from error

    @property
    def window(self) -> Window:
        """The period as a window."""
        return Window(self.start, self.end)


@dataclass(frozen=True, slots=True)
class PriceFact:
    """Price of one GPU-hour of a flavor while in force, in the period's currency."""

    flavor: str
    gpu_hour: Decimal
    start: datetime
    end: datetime | None = None
    currency: str | None = None

    def __post_init__(self) -> None:
        _keep_window_in_utc(self)
        object.__setattr__(self, "gpu_hour", require_decimal("gpu_hour", self.gpu_hour))


@dataclass(frozen=True, slots=True)
class CapacityFact:
    """GPUs of a node that are paid for, whoever uses them."""

    node: str
    flavor: str
    gpus: int
    start: datetime
    end: datetime | None = None

    def __post_init__(self) -> None:
        _keep_window_in_utc(self)
        require_count("gpus", self.gpus)


@dataclass(frozen=True, slots=True)
class UsageFact:
    """GPUs held by a workload.

    ``holding`` says on whose quota: the queue's own nominal, borrowed from the queue
    ``lender`` (None = from nobody's quota), or unmanaged, past all queues. A workload that
    is partly borrowed is two facts. ``team`` is None when no mapping names an owner.
    """

    workload: str
    team: str | None
    queue: str
    flavor: str
    gpus: int
    holding: Holding
    lender: str | None
    start: datetime
    end: datetime | None = None

    def __post_init__(self) -> None:
        _keep_window_in_utc(self)
        require_count("gpus", self.gpus)
        _require_choice("holding", self.holding, get_args(Holding))
        if self.team == "":
            raise InvalidFieldError("team", "must not be empty; None means no owner")
        if self.lender is not None and self.holding != "borrowed":
            raise InvalidFieldError("lender", f"given for GPUs held as {self.holding}")


@dataclass(frozen=True, slots=True)
class QuotaFact:
    """Nominal GPUs of a queue; only the owner policies ask for it."""

    queue: str
    team: str | None
    flavor: str
    nominal: int
    start: datetime
    end: datetime | None = None

    def __post_init__(self) -> None:
        _keep_window_in_utc(self)
        require_count("nominal", self.nominal)
        if self.team == "":
            raise InvalidFieldError("team", "must not be empty; None means no owner")


@dataclass(frozen=True, slots=True)
class Policy:
    """How idle capacity is paid (finops.md 2.8).

    ``idle_scope`` is the pool idle is counted and shared in: each flavor alone, or all
    flavors of the cluster together (OpenCost's rule).
    """

    idle: IdlePolicy = "separate"
    idle_scope: IdleScope = "flavor"

    def __post_init__(self) -> None:
        _require_choice("idle", self.idle, get_args(IdlePolicy))
        _require_choice("idle_scope", self.idle_scope, get_args(IdleScope))


def policy_in_force(idle: IdlePolicy) -> Policy:
    """Return the whole policy that the product bills ``idle`` with.

    What is shared is shared over the whole cluster (decisions.md 6, FORMAT.md 1); idle that
    stays a row of its own is shown flavor by flavor.
    """
    return Policy(idle, "cluster" if idle in {"proportional", "even"} else "flavor")


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything one bill depends on. The order of rows means nothing.

    ``teams`` are the teams that get a bill; usage of another one lands in the bucket
    ``unknown_team``. Empty = whoever appears in usage or quotas.
    """

    period: Period
    prices: tuple[PriceFact, ...]
    capacity: tuple[CapacityFact, ...]
    usage: tuple[UsageFact, ...]
    quotas: tuple[QuotaFact, ...] = ()
    teams: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Two prices or twice the same node would be billed twice; nobody could see it later.
        _refuse_overlap("prices", ((fact.flavor, fact) for fact in self.prices))
        _refuse_overlap("capacity", ((f"{f.node}/{f.flavor}", f) for f in self.capacity))
        _refuse_overlap("quotas", ((f"{f.queue}/{f.flavor}", f) for f in self.quotas))
        if any(price.currency not in {None, self.period.currency} for price in self.prices):
            raise InvalidFieldError(
                "prices", f"currency is not the period's {self.period.currency}"
            )

    @property
    def billed_teams(self) -> frozenset[str]:
        """The teams that can have lines of their own."""
        if self.teams:
            return frozenset(self.teams)
        seen = [fact.team for fact in self.usage] + [fact.team for fact in self.quotas]
        return frozenset(team for team in seen if team is not None)


Dated = PriceFact | CapacityFact | UsageFact | QuotaFact


def _keep_window_in_utc(fact: Period | Dated) -> None:
    for field in ("start", "end"):
        instant = getattr(fact, field)
        if instant is None:
            continue
        if instant.utcoffset() is None:
            raise InvalidFieldError(field, "must have a time zone")
        object.__setattr__(fact, field, instant.astimezone(UTC))
    if fact.end is not None and fact.end <= fact.start:
        raise InvalidFieldError("end", "must be after start")


def _require_choice(field: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidFieldError(field, f"must be one of {', '.join(choices)}, not {value!r}")


def _refuse_overlap(field: str, rows: Iterable[tuple[str, Dated]]) -> None:
    by_key: dict[str, list[Dated]] = defaultdict(list)
    for key, fact in rows:
        by_key[key].append(fact)
    for key, facts in by_key.items():
        facts.sort(key=lambda fact: fact.start)
        for earlier, later in pairwise(facts):
            if earlier.end is None or earlier.end > later.start:
                raise InvalidFieldError(field, f"{key} overlaps from {later.start.isoformat()}")
