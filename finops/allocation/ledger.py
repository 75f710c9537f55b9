"""What is collected before cents are made: exact amounts and quantities by line.

Source of the key fields and of their order: FORMAT.md 6.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Literal, NamedTuple

from finops.allocation.facts import Number
from finops.allocation.places import Account, Place

Origin = Literal[
    "direct",
    "idle",
    "over_allocation",
    "unmeasured",
    "other",
    "external",
    "fixed",
    "adjustment",
    "transfer",
]
Resource = Literal["gpu", "cpu", "memory"]
RESOURCES: tuple[Resource, ...] = ("gpu", "cpu", "memory")


class LineKey(NamedTuple):
    """What makes a line of its own within account and origin; "" and None are absent."""

    line_type: str
    cluster: str = ""
    namespace: str = ""
    queue: str = ""
    flavor: str = ""
    lender: str = ""
    model_group: str = ""
    counterparty: str = ""
    ref: str = ""
    unit_price: Number | None = None

    @property
    def order(self) -> tuple[str, str, str, str, str, str, str, str, str, bool, Number]:
        """The order of lines: texts by code point, absent first, prices as numbers."""
        price = self.unit_price
        return (*self[:9], price is not None, 0 if price is None else price)


class Tally:
    """Exact quantity and amount of a line, told apart by workload and by day where asked for."""

    __slots__ = ("amount", "days", "quantity", "workloads")

    def __init__(self) -> None:
        self.quantity: Number = 0
        self.amount: Number = 0
        self.workloads: dict[str, Tally] = {}
        self.days: dict[date, Tally] = {}

    def add(self, amount: Number, quantity: Number = 0) -> None:
        """Add an amount and what it was for."""
        self.amount += amount
        self.quantity += quantity

    def absorb(self, other: "Tally") -> None:
        """Add another tally and its parts."""
        self.add(other.amount, other.quantity)
        for workload, part in other.workloads.items():
            self.workloads.setdefault(workload, Tally()).add(part.amount, part.quantity)
        for day, part in other.days.items():
            self.days.setdefault(day, Tally()).add(part.amount, part.quantity)

    def __bool__(self) -> bool:
        return bool(self.amount or self.quantity)


class Pool(NamedTuple):
    """Where idle is counted (FORMAT.md 3.2): node "" = by cluster, day 0 = the whole period.

    ``flavor`` is "" but where the product counts idle flavor by flavor.
    """

    cluster: str
    node: str
    day: int
    is_loaded: bool
    resource: Resource
    flavor: str = ""


class Landing(NamedTuple):
    """A line of direct cost at the place where it first landed, in the pool it was taken from."""

    pool: Pool
    place: Place
    key: LineKey


Direct = dict[Landing, Tally]


class Entry(NamedTuple):
    """A line at a place, under its origin."""

    origin: Origin
    place: Place
    key: LineKey


class Ledger(defaultdict[Entry, Tally]):
    """Exact sums by origin, place and line."""

    def __init__(self) -> None:
        super().__init__(Tally)

    def add(
        self, origin: Origin, place: Place, key: LineKey, amount: Number, quantity: Number = 0
    ) -> None:
        """Add to a line."""
        self[Entry(origin, place, key)].add(amount, quantity)

    def settled(self) -> Iterator[tuple[Origin, Account, LineKey, Tally]]:
        """Yield the lines that are not empty; by now every pool has passed on what it had."""
        for (origin, place, key), tally in self.items():
            assert isinstance(place, Account), place
            if tally:
                yield origin, place, key, tally
