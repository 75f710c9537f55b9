"""What is paid for and not used, by pool, and who bears it (FORMAT.md 3.2)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date
from fractions import Fraction
from typing import NamedTuple

from finops.allocation import places
from finops.allocation.direct import Used
from finops.allocation.facts import Number
from finops.allocation.ground import Ground
from finops.allocation.ledger import Ledger, LineKey, Pool, Resource
from finops.allocation.loans import Metered
from finops.allocation.money import ZERO, exact_sum
from finops.allocation.places import Place
from finops.allocation.timeline import hours


class Weigher(NamedTuple):
    """Who weighs in a pool: a place, with each of its namespaces on its own."""

    place: Place
    cluster: str
    namespace: str


class Where(NamedTuple):
    """What a line of idle names: the cluster, and the flavor where it is counted by that."""

    cluster: str
    flavor: str

    @classmethod
    def of(cls, pool: Pool) -> "Where":
        """Return what the lines of a pool name."""
        return cls(pool.cluster, pool.flavor)

    def key(self, line_type: str) -> LineKey:
        """Return the line of a type."""
        return LineKey(line_type, cluster=self.cluster, flavor=self.flavor)


class Share(NamedTuple):
    """A part of a pool's idle that a weigher would bear under ``proportional``."""

    pool: Pool
    weigher: Weigher
    amount: Number


class Excess(NamedTuple):
    """Where more was charged than stands there."""

    cluster: str
    node: str
    resource: Resource
    flavor: str


class Idle:
    """Capacity cost, and what of it stands idle, by pool; negative where too much was used."""

    def __init__(self, ground: Ground, used: Used) -> None:
        self.capacity = _capacity(ground)
        self._weights: dict[Pool, dict[Weigher, Number]] = defaultdict(lambda: defaultdict(int))
        direct: dict[Pool, Number] = defaultdict(int)
        for (pool, place, key), tally in used.direct.items():
            direct[pool] += tally.amount
            self._weights[pool][Weigher(place, key.cluster, key.namespace)] += tally.amount
        self.amounts = {
            pool: self.capacity.get(pool, 0) - direct.get(pool, 0)
            for pool in sorted(self.capacity.keys() | direct.keys())
        }

    def shares(self, pool: Pool) -> Iterator[Share]:
        """Yield who bears the idle of a pool, by direct cost where that is positive."""
        weights = {who: cost for who, cost in self._weights[pool].items() if cost > 0}
        total = exact_sum(weights.values())
        for who, cost in weights.items():
            yield Share(pool, who, self.amounts[pool] * cost / total)

    def proportional(self) -> Iterator[Share]:
        """Yield all shares of loaded pools, whatever the policy (FORMAT.md 6, memo)."""
        for pool, amount in self.amounts.items():
            if pool.is_loaded and amount > 0:
                yield from self.shares(pool)


def _capacity(ground: Ground) -> dict[Pool, Number]:
    cost: dict[Pool, Number] = defaultdict(int)
    for row in ground.facts.capacity:
        for slot, length in ground.slots.of(row):
            price = ground.price(row.flavor, slot)
            parts: tuple[tuple[Resource, Number], ...] = (
                ("gpu", row.gpus * price.gpu_hour),
                ("cpu", row.cpus * price.cpu_hour),
                ("memory", row.memory_gib * price.gib_hour),
            )
            for resource, per_hour in parts:
                if per_hour:
                    pool = ground.pool(row.cluster, row.node, slot, resource, row.flavor)
                    cost[pool] += hours(per_hour * length)
    return cost


def share_idle(ground: Ground, idle: Idle, ledger: Ledger) -> None:
    """Write the idle of every pool into ``ledger`` as the policy wants it."""
    policy = ground.facts.policy.idle
    is_owned = policy in {"owner", "owner_net"}
    if is_owned:
        for metered in ground.metered:
            _owned(ground, metered, ledger)
    for pool, amount in idle.amounts.items():
        if is_owned and pool.resource == "gpu":
            continue
        if amount < 0:
            _add(ledger, "over_allocation", Where.of(pool), amount)
        elif not pool.is_loaded:
            _add(ledger, "unmeasured", Where.of(pool), amount)
        elif policy == "proportional":
            _by_cost(idle, pool, ledger)
        elif policy == "even":
            _evenly(ground, pool, amount, ledger)
        else:
            _add(ledger, "idle", Where.of(pool), amount)


_CENTRAL = {
    "idle": ("idle", places.IDLE),
    "idle_unattributed": ("idle", places.IDLE_UNATTRIBUTED),
    "over_allocation": ("over_allocation", places.OVER_ALLOCATION),
    "unmeasured": ("unmeasured", places.UNMEASURED),
}


def _add(ledger: Ledger, line_type: str, where: Where, amount: Number) -> None:
    """Add a central line; its bucket has its name."""
    origin, account = _CENTRAL[line_type]
    ledger.add(origin, account, where.key(line_type), amount)  # type: ignore[arg-type]


def _by_cost(idle: Idle, pool: Pool, ledger: Ledger) -> None:
    shares = list(idle.shares(pool))
    if not shares:
        _add(ledger, "idle_unattributed", Where.of(pool), idle.amounts[pool])
    for share in shares:
        key = Where.of(pool).key("idle_share")
        ledger.add("idle", share.weigher.place, key, share.amount)


def _evenly(ground: Ground, pool: Pool, amount: Number, ledger: Ledger) -> None:
    teams = ground.facts.teams
    key = Where.of(pool).key("idle_share")
    if not teams:  # facts from rows may know none
        _add(ledger, "idle_unattributed", Where.of(pool), amount)
    for team in teams:
        ledger.add("idle", places.team(team.id), key, Fraction(amount) / len(teams))


# ---- owners pay ------------------------------------------------------------------------------
def _owned(ground: Ground, metered: Metered, ledger: Ledger) -> None:
    """Charge GPU idle instant by instant to the queues that were promised it."""
    where = Where(metered.cluster, ground.named(metered.flavor))
    for (queue, slot), record in metered.queues.items():
        if record.net_idle or record.lent:
            _owned_by(ground, metered, queue, slot, ledger)
    for slot, totals in metered.slots.items():
        if not (totals.unquota or totals.over):
            continue
        price = ground.price(metered.flavor, slot).gpu_hour
        is_loaded = _is_loaded(ground, metered.cluster, slot)
        line_type = "idle" if is_loaded else "unmeasured"
        _add(ledger, line_type, where, hours(totals.unquota) * price)
        _add(ledger, "over_allocation", where, -hours(totals.over) * price)


def _owned_by(ground: Ground, metered: Metered, queue: str, slot: int, ledger: Ledger) -> None:
    record = metered.queues[queue, slot]
    cluster = metered.cluster
    price = ground.price(metered.flavor, slot).gpu_hour
    owner = ground.owners.of_queue(cluster, queue, ground.start(slot))
    key = LineKey("idle_owned", cluster=cluster, queue=queue, flavor=metered.flavor)
    key = key._replace(unit_price=price)
    net_idle, lent = hours(record.net_idle), hours(record.lent)
    if not _is_loaded(ground, cluster, slot):
        where = Where(cluster, ground.named(metered.flavor))
        _add(ledger, "unmeasured", where, net_idle * price)
        net_idle = ZERO
    if ground.facts.policy.idle == "owner":
        income = key._replace(line_type="loan_income")
        ledger.add("idle", places.PLATFORM, income, -lent * price, lent)
    else:
        lent = ZERO
    ledger.add("idle", owner, key, (net_idle + lent) * price, net_idle + lent)


def _is_loaded(ground: Ground, cluster: str, slot: int) -> bool:
    return ground.loaded.billed(cluster, ground.start(slot))


def idle_by_day(ground: Ground, used: Used) -> dict[Where, dict[date, Number]]:
    """Return by pool and local day what was paid for and not used, in money; any sign."""
    found: dict[Where, dict[date, Number]] = defaultdict(lambda: defaultdict(int))
    if not ground.dates:
        return {}
    for row in ground.facts.capacity:
        for slot, length in ground.slots.of(row):
            price = ground.price(row.flavor, slot).gpu_hour
            where = Where(row.cluster, ground.named(row.flavor))
            found[where][ground.dates[slot]] += hours(row.gpus * price * length)
    for (pool, _, _), tally in used.direct.items():
        for day, part in tally.days.items():
            found[Where.of(pool)][day] -= part.amount
    return {where: dict(days) for where, days in found.items()}


def over_allocated(ground: Ground, idle: Idle) -> Mapping[Excess, Number]:
    """Return what was charged beyond capacity; positive."""
    found: dict[Excess, Number] = defaultdict(int)
    is_owned = ground.facts.policy.idle in {"owner", "owner_net"}
    for pool, amount in idle.amounts.items():
        if amount < 0 and not (is_owned and pool.resource == "gpu"):
            found[Excess(pool.cluster, pool.node, pool.resource, pool.flavor)] -= amount
    for metered in ground.metered if is_owned else ():
        for slot, totals in metered.slots.items():
            if totals.over:
                price = ground.price(metered.flavor, slot).gpu_hour
                flavor = ground.named(metered.flavor)
                excess = Excess(metered.cluster, "", "gpu", flavor)
                found[excess] += hours(totals.over) * price
    return found
