"""What pools pass on: serving pools to the teams of the tokens, shared ones to all teams.

Source: FORMAT.md 3.3 (serving), 3.4 (shared).
"""

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

from finops.allocation import places
from finops.allocation.facts import Facts, Number, SharedItem
from finops.allocation.ground import Ground
from finops.allocation.ledger import Entry, Ledger, LineKey, Origin, Tally
from finops.allocation.money import exact_sum
from finops.allocation.places import Account, ServingPool, SharedPool
from finops.allocation.timeline import inside
from finops.allocation.tokens import Served, Weights

Parts = Mapping[Account, Fraction]


# ---- serving pools ---------------------------------------------------------------------------
class Consumers:
    """Who bears a serving pool, in parts that add up to 1."""

    def __init__(self, facts: Facts, weights: Mapping[Served, Weights]) -> None:
        self._to_owner = facts.policy.tokens_without_team == "owner"
        self._weights = weights
        self._known: dict[ServingPool, Parts] = {}

    def parts(self, pool: ServingPool) -> Parts:
        """Return the part of every account; all to the owner where nothing weighs."""
        found = self._known.get(pool)
        if found is None:
            found = self._known[pool] = self._find(pool)
        return found

    def _find(self, pool: ServingPool) -> Parts:
        weights = self._weights.get((pool.cluster, pool.namespace), {})
        total = exact_sum(weights.values())
        if not total:
            return {pool.owner: Fraction(1)}
        parts: dict[Account, Fraction] = defaultdict(Fraction)
        for account, weight in weights.items():
            is_owners = account.is_bucket and self._to_owner
            parts[pool.owner if is_owners else account] += weight / total
        return parts


def pass_on_serving(consumers: Consumers, ledger: Ledger) -> None:
    """Divide everything that landed in serving pools."""
    for entry, tally in _taken(ledger, ServingPool):
        pool = entry.place
        assert isinstance(pool, ServingPool)
        is_idle = entry.origin == "idle"
        key = (
            LineKey("idle_share", cluster=pool.cluster)
            if is_idle
            else LineKey("serving_share", cluster=pool.cluster, namespace=pool.namespace)
        )
        for account, part in consumers.parts(pool).items():
            ledger.add(entry.origin, account, key, tally.amount * part)


def _taken(ledger: Ledger, kind: type[ServingPool | SharedPool]) -> list[tuple[Entry, Tally]]:
    """Take the lines that landed in pools of a kind out of the ledger."""
    entries = [entry for entry in ledger if isinstance(entry.place, kind)]
    return [(entry, ledger.pop(entry)) for entry in entries]


# ---- shared costs ----------------------------------------------------------------------------
def share_costs(ground: Ground, ledger: Ledger) -> dict[str, Number]:
    """Give out shared namespaces and fixed amounts.

    Returns:
        The fixed amounts by item, each a source of its own.
    """
    facts = ground.facts
    weights = _own_cost(facts, ledger)
    pools: dict[str, dict[Origin, Number]] = defaultdict(lambda: defaultdict(int))
    for entry, tally in _taken(ledger, SharedPool):
        assert isinstance(entry.place, SharedPool)
        pools[entry.place.item][entry.origin] += tally.amount
    fixed = {item.id: _in_force(facts, item) for item in facts.shared if item.amount is not None}
    for item_id, amount in fixed.items():
        pools[item_id]["fixed"] += amount
    for item in facts.shared:
        parts = _parts(item, weights)
        for origin, amount in pools[item.id].items():
            for account, part in parts.items():
                ledger.add(origin, account, LineKey("shared", ref=item.id), amount * part)
    return fixed


def unweighted_items(ground: Ground, ledger: Ledger) -> list[str]:
    """Return the weighted items that have something to give out and nobody who weighs.

    Asked before ``share_costs``, which divides them evenly.
    """
    facts = ground.facts
    if any(_own_cost(facts, ledger).values()):
        return []
    full = {
        entry.place.item
        for entry, tally in ledger.items()
        if isinstance(entry.place, SharedPool) and tally.amount
    }
    full |= {item.id for item in facts.shared if _in_force(facts, item)}
    return sorted(
        item.id for item in facts.shared if item.method == "weighted" and item.id in full
    )


def _own_cost(facts: Facts, ledger: Ledger) -> Weights:
    """Return each team's direct and other cost before anything shared, not below 0."""
    cost: Weights = {places.team(team.id): 0 for team in facts.teams}
    for (origin, place, _), tally in ledger.items():
        if origin in {"direct", "other"} and place in cost:
            assert isinstance(place, Account)
            cost[place] += tally.amount
    return {account: max(0, amount) for account, amount in cost.items()}


def _in_force(facts: Facts, item: SharedItem) -> Number:
    """Return the amount of an item for the hours that it was in force."""
    window = inside(item, facts.period)
    if item.amount is None or window is None:
        return 0
    length = facts.period.end - facts.period.start
    return item.amount * Fraction(window.end - window.start, length)


def _parts(item: SharedItem, weights: Weights) -> Parts:
    if item.method == "fixed":
        return {
            places.team(name): Fraction(percent) / 100
            for name, percent in item.percentages.items()
        }
    total = exact_sum(weights.values())
    if item.method == "weighted" and total:
        return {account: weight / total for account, weight in weights.items()}
    return {account: Fraction(1, len(weights)) for account in weights}
