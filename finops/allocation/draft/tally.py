"""Exact sums on their way to becoming bill lines."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Literal, NamedTuple

from finops.allocation.draft.pricing import PricedPiece
from finops.allocation.money import ZERO

Origin = Literal["direct", "idle", "over_allocation"]
LineKind = Literal[
    "gpu_direct",
    "gpu_borrowed",
    "unmanaged",
    "idle",
    "idle_share",
    "idle_owned",
    "idle_unattributed",
    "loan_income",
    "over_allocation",
]


class Account(NamedTuple):
    """Who bears a line: a team or a central bucket. Teams sort before buckets."""

    is_bucket: bool
    name: str


def team_account(team: str) -> Account:
    """Return the account of a team."""
    return Account(is_bucket=False, name=team)


def bucket(name: str) -> Account:
    """Return a central account."""
    return Account(is_bucket=True, name=name)


IDLE = bucket("idle")
IDLE_UNATTRIBUTED = bucket("idle_unattributed")
OVER_ALLOCATION = bucket("over_allocation")
PLATFORM = bucket("platform")
UNALLOCATED_LABEL = bucket("unallocated_label")
UNALLOCATED_QUEUE = bucket("unallocated_queue")
UNKNOWN_TEAM = bucket("unknown_team")

UNALLOCATED = (UNALLOCATED_LABEL, UNALLOCATED_QUEUE, UNKNOWN_TEAM)


def owner_account(team: str | None, queue: str, billed_teams: frozenset[str]) -> Account:
    """Return where a team's share lands; without a known team, a bucket that says why."""
    if team is None:
        return UNALLOCATED_QUEUE if queue else UNALLOCATED_LABEL
    return team_account(team) if team in billed_teams else UNKNOWN_TEAM


class LineKey(NamedTuple):
    """What makes a line its own; what does not apply is empty, so that keys sort.

    ``rate`` holds the price per GPU-hour of a line of use, so that quantity times price is its
    amount; it is empty for hours without a price and for lines that have none.
    """

    origin: Origin
    account: Account
    kind: LineKind
    flavor: str = ""
    lender: str = ""
    rate: tuple[Decimal, ...] = ()


@dataclass(slots=True)
class Sum:
    """Exact GPU-hours and cost."""

    gpu_hours: Fraction = ZERO
    cost: Fraction = ZERO

    def add(self, gpu_hours: Fraction, cost: Fraction) -> None:
        """Add both."""
        self.gpu_hours += gpu_hours
        self.cost += cost

    def charge(self, gpus: Fraction | int, piece: PricedPiece) -> None:
        """Add ``gpus`` held for a priced stretch of time."""
        gpu_hours = gpus * piece.hours
        self.add(gpu_hours, piece.cost(gpu_hours))


@dataclass(slots=True)
class Tally(Sum):
    """The sum of one line, with the prices it was made of and its days (charts)."""

    unit_prices: set[Decimal | None] = field(default_factory=set)
    days: dict[date, Sum] = field(default_factory=lambda: defaultdict(Sum))

    def charge(self, gpus: Fraction | int, piece: PricedPiece) -> None:
        """Add ``gpus`` held for a priced stretch of time, and remember the price."""
        if gpus:
            Sum.charge(self, gpus, piece)
            self.unit_prices.add(piece.unit_price)

    @property
    def unit_price(self) -> Decimal | None:
        """The price per GPU-hour, None if there were several or hours without one."""
        return next(iter(self.unit_prices)) if len(self.unit_prices) == 1 else None


class Ledger(defaultdict[LineKey, Tally]):
    """Tallies by line."""

    def __init__(self) -> None:
        super().__init__(Tally)

    def rows(self) -> Iterator[tuple[LineKey, Tally]]:
        """Give the lines that are about something, in the order of the bill (FORMAT.md 6)."""
        for key in sorted(self, key=lambda key: (key.account, key)):
            if self[key].cost or self[key].gpu_hours:
                yield key, self[key]
