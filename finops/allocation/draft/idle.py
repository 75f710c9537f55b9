"""What was paid for and not used, and who pays it (finops.md 2, FORMAT.md 3.2).

Idle of a pool is its capacity cost minus the cost of its use, exact, over the whole period.
"""

from collections.abc import Mapping
from fractions import Fraction

from finops.allocation.draft.facts import Facts, Policy
from finops.allocation.draft.ownership import owner_idle
from finops.allocation.draft.pricing import PriceList
from finops.allocation.draft.tally import (
    IDLE,
    IDLE_UNATTRIBUTED,
    OVER_ALLOCATION,
    Account,
    Ledger,
    LineKey,
    Tally,
    team_account,
)
from finops.allocation.money import ZERO


def idle_ledger(
    facts: Facts,
    policy: Policy,
    prices: PriceList,
    capacity: Mapping[str, Tally],
    direct: Ledger,
) -> Ledger:
    """Return the idle and over-allocation lines under ``policy``.

    ``capacity`` has the hours and cost of each flavor that is paid for, ``direct`` the lines
    of use. The cost of the returned lines is exactly capacity cost minus direct cost.
    """
    if policy.idle in {"owner", "owner_net"}:
        return owner_idle(facts, prices, repay_lent=policy.idle == "owner")
    ledger = Ledger()
    for pool, rest in _unused_by_pool(policy, capacity, direct).items():
        if rest.cost < 0 or (not rest.cost and rest.gpu_hours < 0):
            # Nobody's use is scaled down: the excess is shown, and looked into (finops.md 2.5).
            key = LineKey("over_allocation", OVER_ALLOCATION, "over_allocation", pool)
            _put(ledger, key, rest)
        elif policy.idle in {"separate", "hidden"}:
            _put(ledger, LineKey("idle", IDLE, "idle", pool), rest)
        else:
            weights = _weights(facts, policy, direct, pool)
            _share(ledger, pool, rest, weights)
    return ledger


def pool_of(flavor: str, policy: Policy) -> str:
    """Return the pool a flavor's idle is counted in; the cluster is the nameless one."""
    return flavor if policy.idle_scope == "flavor" else ""


def _unused_by_pool(
    policy: Policy, capacity: Mapping[str, Tally], direct: Ledger
) -> dict[str, Tally]:
    """Return capacity minus use; negative where more was used than there was."""
    unused: dict[str, Tally] = {}
    signed = [(flavor, tally, 1) for flavor, tally in capacity.items()]
    signed += [(key.flavor, tally, -1) for key, tally in direct.items()]
    for flavor, tally, sign in signed:
        rest = unused.setdefault(pool_of(flavor, policy), Tally())
        rest.add(sign * tally.gpu_hours, sign * tally.cost)
        rest.unit_prices |= tally.unit_prices
    return unused


def _weights(facts: Facts, policy: Policy, direct: Ledger, pool: str) -> dict[Account, Fraction]:
    """Return the share of each account: equal for teams, or by direct cost in the pool.

    Buckets take part in the proportional split: what nobody owns causes idle like the rest.
    """
    if policy.idle == "even":
        return {team_account(team): Fraction(1) for team in facts.billed_teams}
    weights: dict[Account, Fraction] = {}
    for key, tally in direct.items():
        if pool_of(key.flavor, policy) == pool:
            weights[key.account] = weights.get(key.account, ZERO) + tally.cost
    return weights


def _share(ledger: Ledger, pool: str, rest: Tally, weights: Mapping[Account, Fraction]) -> None:
    weight_sum = sum(weights.values(), ZERO)
    if not weight_sum:
        # Nobody used the pool: sharing would have to invent a payer (finops.md 2.2).
        _put(ledger, LineKey("idle", IDLE_UNATTRIBUTED, "idle_unattributed", pool), rest)
        return
    for account, weight in weights.items():
        part = weight / weight_sum
        _put(ledger, LineKey("idle", account, "idle_share", pool), rest, part)


def _put(ledger: Ledger, key: LineKey, rest: Tally, part: Fraction = Fraction(1)) -> None:
    tally = ledger[key]
    tally.add(rest.gpu_hours * part, rest.cost * part)
    tally.unit_prices |= rest.unit_prices
