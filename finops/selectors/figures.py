"""What money is for: columns of every list of costs, and sources that a month adds up from.

One rule for pages, files and REST: the columns of a row add up to its total, and the bills of a
month to the sum of its sources, both to the cent.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from finops import words
from finops.allocation.money import round_half_up
from finops.models import BillingPeriod, BillLine

NOTHING = Decimal("0.00")
WHOLE = ("own", "borrowed", "idle", "rest")


@dataclass(frozen=True, slots=True)
class Figures:
    """Money and hours of one bill, or of several together, by what they are for.

    The amounts of ``words.COLUMNS`` add up to ``total``.
    """

    gpu_hours: Decimal = NOTHING  # used, of all holders
    idle_gpu_hours: Decimal = NOTHING  # paid and unused; with the used ones those of the capacity
    own: Decimal = NOTHING
    borrowed: Decimal = NOTHING
    idle: Decimal = NOTHING
    tokens: Decimal = NOTHING
    adjustments: Decimal = NOTHING
    other: Decimal = NOTHING
    total: Decimal = NOTHING

    @property
    def use(self) -> Decimal:
        """Return the cost of the GPU-hours used, own and borrowed."""
        return self.own + self.borrowed

    @property
    def columns(self) -> dict[str, Decimal]:
        """Return the amounts by column, as files and answers have them."""
        return {name: getattr(self, name) for name in words.COLUMNS}

    @property
    def whole(self) -> dict[str, Decimal]:
        """Return own, borrowed, idle and rest in whole units, which add up to the whole total.

        For tiles: rounded each on its own, 12.40 + 5.40 = 17.80 would read 12 + 5 = 18.
        """
        exact = {name: Fraction(getattr(self, name)) for name in WHOLE}
        total = round_half_up(self.total, 0)
        floors = {name: Decimal(amount // 1) for name, amount in exact.items()}
        short = int(total - sum(floors.values()))
        by_remainder = sorted(WHOLE, key=lambda name: Fraction(floors[name]) - exact[name])
        for name in by_remainder[:short]:
            floors[name] += 1
        return floors

    @property
    def rest(self) -> Decimal:
        """Return what is neither use nor idle: tokens, adjustments and other lines."""
        return self.tokens + self.adjustments + self.other


def figures_of(lines: Iterable[BillLine]) -> Figures:
    """Return what lines come to, by column."""
    amounts: dict[str, Decimal] = dict.fromkeys(words.COLUMNS, NOTHING)
    used, idle = Decimal(0), Decimal(0)
    for line in lines:
        amounts[words.column_of(line.kind)] += line.amount
        if line.kind in words.USE_KINDS:
            used += line.quantity or 0
        elif line.kind in words.CAPACITY_KINDS:
            # Loan income shows as positive hours what is given back to the lenders.
            idle += (line.quantity or 0) * (-1 if line.kind == "loan_income" else 1)
    return Figures(used, idle, **amounts, total=sum(amounts.values(), NOTHING))


def cost_parts(period: BillingPeriod) -> tuple[tuple[str, Decimal], ...]:
    """Return the sources of a month's cost by name: the capacity, and what else is not nothing.

    They add up to ``period.total_cost``, and so do the bills.
    """
    found = ((name, getattr(period, f"{name}_cost")) for name in words.SOURCES)
    return tuple((name, cost) for name, cost in found if cost or name == "capacity")


def parts_sentence(period: BillingPeriod, shown: words.Shown) -> str:
    """Return the same as a sum in words, like "capacity 4,032.00 + storage ... 14.40"."""
    return " + ".join(f"{words.SOURCES[name]} {shown(cost)}" for name, cost in cost_parts(period))
