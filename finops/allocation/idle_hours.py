"""The GPU-hours behind lines of idle: capacity less use, whoever pays for it. Exact.

Lines of idle carry money only, but for those of an owner's own quota (FORMAT.md 6). What was
unused of a pool belongs to its lines in proportion to their money; with what was used it adds
up to the capacity.
"""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from finops.allocation.bill import Outcome
from finops.allocation.idle import Where
from finops.allocation.lines import Line
from finops.allocation.memo import FlavorHours
from finops.allocation.money import ZERO, exact_sum

IDLE_TYPES = frozenset({"idle", "idle_share", "idle_owned", "idle_unattributed"})
# What stands for capacity that nobody used, was used beyond it, or was not measured.
CAPACITY_TYPES = IDLE_TYPES | {"over_allocation", "unmeasured", "loan_income"}
OWNER_POLICIES = frozenset({"owner", "owner_net"})


def idle_hours(outcome: Outcome) -> dict[int, Fraction]:
    """Return by the position of a line in ``outcome.lines`` the unused GPU-hours it stands for.

    Of lines of capacity only. What is given back to lenders, and use beyond the capacity, is
    negative. Costs O(lines).
    """
    found: dict[int, Fraction] = {}
    pools: dict[Where, list[int]] = defaultdict(list)
    for index, line in enumerate(outcome.lines):
        if line.key.line_type not in CAPACITY_TYPES:
            continue
        if line.quantity:
            sign = -1 if line.key.line_type == "loan_income" else 1
            found[index] = sign * line.quantity
        else:
            pools[Where(line.key.cluster, line.key.flavor)].append(index)
    is_owned = outcome.facts.policy.idle in OWNER_POLICIES
    for pool, indices in pools.items():
        lines = [outcome.lines[index] for index in indices]
        parts = _by_metering if is_owned else _by_money
        found.update(zip(indices, parts(outcome, pool, lines), strict=True))
    return found


def _by_money(outcome: Outcome, pool: Where, lines: list[Line]) -> list[Fraction]:
    return _shares(_unused(outcome, pool), lines)


def _by_metering(outcome: Outcome, pool: Where, lines: list[Line]) -> list[Fraction]:
    """Under owner policies what is left is in nobody's quota, or beyond capacity."""
    metered = _metered(outcome, pool)
    hours = {
        "idle": exact_sum(row.unquota for row in metered),
        "over_allocation": -exact_sum(row.over for row in metered),
    }
    by_type = {
        kind: iter(_shares(amount, [line for line in lines if line.key.line_type == kind]))
        for kind, amount in hours.items()
    }
    return [next(by_type.get(line.key.line_type, iter(())), ZERO) for line in lines]


def _shares(hours: Fraction, lines: list[Line]) -> list[Fraction]:
    total = exact_sum(line.exact for line in lines)
    return [hours * line.exact / total if total else ZERO for line in lines]


def _unused(outcome: Outcome, pool: Where) -> Fraction:
    if not pool.flavor:
        rows = outcome.memo.gpu_hours
        return exact_sum(row.idle for row in rows if row.cluster == pool.cluster)
    return exact_sum(row.capacity - row.used for row in _metered(outcome, pool))


def _metered(outcome: Outcome, pool: Where) -> Iterable[FlavorHours]:
    return [
        row
        for row in outcome.memo.metering
        if row.cluster == pool.cluster and pool.flavor in {row.flavor, ""}
    ]
