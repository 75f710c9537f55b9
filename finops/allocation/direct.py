"""What was used, at the price of each hour, and where it first lands (FORMAT.md 2 and 3.1)."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from finops.allocation import places
from finops.allocation.cohorts import NOBODY
from finops.allocation.facts import Iron, Number, Usage
from finops.allocation.ground import Ground
from finops.allocation.ledger import Direct, Entry, Landing, Ledger, LineKey, Resource, Tally
from finops.allocation.loans import Held
from finops.allocation.money import ZERO
from finops.allocation.ownership import marks_of_iron, marks_of_usage
from finops.allocation.places import Account, Place
from finops.allocation.timeline import hours

# Line types by the resource they are about; all others are about GPUs.
RESOURCE_OF_LINE: Mapping[str, Resource] = {"cpu": "cpu", "memory": "memory"}
# Line types by the fields of a row of OpenCost: cost, and quantity where it has one.
DIRECT_COSTS = {
    "gpu_direct": ("gpu_cost", "gpu_hours"),
    "cpu": ("cpu_cost", ""),
    "memory": ("ram_cost", ""),
}
OTHER_COSTS = {"storage": "pv_cost", "network": "network_cost", "load_balancer": "lb_cost"}


@dataclass(frozen=True, slots=True)
class Loan:
    """Borrowed GPUs of one owner from one queue's account, at one price; hours by key."""

    owner: Account
    lender: Account | None
    price: Number


@dataclass(slots=True)
class Used:
    """All that was used: direct cost by pool and place, and hours by owner and cluster."""

    direct: Direct = field(default_factory=lambda: defaultdict(Tally))
    other: Ledger = field(default_factory=Ledger)
    loans: dict[Loan, Number] = field(default_factory=lambda: defaultdict(int))  # GPU-us
    metered_hours: dict[Account, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    iron_hours: dict[Account, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    iron_hours_by_cluster: dict[str, Fraction] = field(default_factory=dict)


def used(ground: Ground) -> Used:
    """Return what was used in the period, from metering and from rows of OpenCost."""
    found = Used()
    _meter_gpus(ground, found)
    if ground.facts.policy.usage_source == "scheduler":
        _meter_cpus(ground, found)
    for row in ground.facts.iron:
        if row.namespace != places.IDLE_NAMESPACE:
            _spread(ground, row, found)
    return found


# ---- our own metering ------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Piece:
    """A run in one slot, and the place its cost lands at."""

    use: Usage
    slot: int
    place: Place
    is_preempted: bool  # and lands there because it was

    def key(self, line_type: str, price: Number, lender: str = "") -> LineKey:
        """Return the line of a price; ``lender`` is a queue."""
        return LineKey(
            line_type,
            cluster=self.use.cluster,
            namespace=self.use.namespace or "",
            queue=self.use.queue or "",
            flavor=self.use.flavor,
            lender=lender,
            unit_price=price,
        )


def _piece(ground: Ground, use: Usage, slot: int) -> _Piece:
    policy = ground.facts.policy.preempted
    if use.preempted and policy == "not_charged":
        return _Piece(use, slot, places.PREEMPTED_WORK, is_preempted=True)
    if use.preempted and policy == "reclaimer" and use.reclaimed_by:
        return _Piece(use, slot, places.team(use.reclaimed_by), is_preempted=True)
    place = ground.owners.landing(marks_of_usage(use), ground.start(slot))
    return _Piece(use, slot, place, is_preempted=False)


def _meter_gpus(ground: Ground, found: Used) -> None:
    is_billed = ground.facts.policy.usage_source == "scheduler"
    for metered in ground.metered:
        for (run, slot), held in metered.held.items():
            use = ground.facts.usage[run]
            owner = ground.owners.owner(marks_of_usage(use), ground.start(slot))
            found.metered_hours[owner] += hours(held.total)
            if is_billed:
                _charge_gpus(ground, found, _piece(ground, use, slot), held)


def _charge_gpus(ground: Ground, found: Used, piece: _Piece, held: Held) -> None:
    price = ground.price(piece.use.flavor, piece.slot).gpu_hour
    if piece.is_preempted:
        _charge(ground, found, piece, piece.key("gpu_preempted", price), held.total)
        return
    _charge(ground, found, piece, piece.key("gpu_direct", price), held.own)
    for lender, gpus in held.borrowed.items():
        _charge(ground, found, piece, piece.key("gpu_borrowed", price, lender), gpus)
        found.loans[_loan(ground, piece, lender, price)] += gpus


def _loan(ground: Ground, piece: _Piece, lender: str, price: Number) -> Loan:
    at = ground.start(piece.slot)
    owner = ground.owners.owner(marks_of_usage(piece.use), at)
    if lender == NOBODY:
        return Loan(owner, None, price)
    return Loan(owner, ground.owners.of_queue(piece.use.cluster, lender, at), price)


def _meter_cpus(ground: Ground, found: Used) -> None:
    for use in ground.facts.usage:
        if not (use.cpus or use.memory_gib):
            continue
        for slot, length in ground.slots.of(use):
            price = ground.price(use.flavor, slot)
            piece = _piece(ground, use, slot)
            _charge(ground, found, piece, piece.key("cpu", price.cpu_hour), use.cpus * length)
            memory = piece.key("memory", price.gib_hour)
            _charge(ground, found, piece, memory, use.memory_gib * length)


def _charge(ground: Ground, found: Used, piece: _Piece, key: LineKey, amount: Number) -> None:
    """Charge ``amount`` x microseconds at the key's price; nothing is no line."""
    if not amount:
        return
    assert key.unit_price is not None
    use = piece.use
    resource = RESOURCE_OF_LINE.get(key.line_type, "gpu")
    quantity = hours(amount)
    pool = ground.pool(use.cluster, use.node, piece.slot, resource, use.flavor)
    tally = found.direct[Landing(pool, piece.place, key)]
    tally.add(quantity * key.unit_price, quantity)
    if ground.facts.policy.detail == "workload":
        part = tally.workloads.setdefault(use.workload, Tally())
        part.add(quantity * key.unit_price, quantity)
    if ground.dates:
        part = tally.days.setdefault(ground.dates[piece.slot], Tally())
        part.add(quantity * key.unit_price, quantity)


# ---- rows of OpenCost ------------------------------------------------------------------------
def _spread(ground: Ground, row: Iron, found: Used) -> None:
    """Spread a row evenly over its window and take the part of each slot."""
    marks = marks_of_iron(row)
    is_billed = ground.facts.policy.usage_source == "opencost"
    for slot, length in ground.slots.of(row):
        part = Fraction(length, row.end - row.start)
        at = ground.start(slot)
        found.iron_hours[ground.owners.owner(marks, at)] += row.gpu_hours * part
        before = found.iron_hours_by_cluster.get(row.cluster, ZERO)
        found.iron_hours_by_cluster[row.cluster] = before + row.gpu_hours * part
        place = ground.owners.landing(marks, at)
        for line_type, name in OTHER_COSTS.items():
            other: Number = getattr(row, name) * part
            tally = found.other[Entry("other", place, _iron_key(row, line_type))]
            _tell(ground, row, tally, other)
        for line_type, costs in DIRECT_COSTS.items() if is_billed else ():
            cost: Number = getattr(row, costs[0])
            quantity: Number = getattr(row, costs[1]) if costs[1] else 0
            if cost or quantity:
                resource = RESOURCE_OF_LINE.get(line_type, "gpu")
                pool = ground.pool(row.cluster, row.node, slot, resource)
                landing = Landing(pool, place, _iron_key(row, line_type))
                _tell(ground, row, found.direct[landing], cost * part, quantity * part)


def _tell(ground: Ground, row: Iron, tally: Tally, amount: Number, quantity: Number = 0) -> None:
    """Add to a line, and to its part of that name where rows have names."""
    tally.add(amount, quantity)
    if row.workload and ground.facts.policy.detail == "workload":
        tally.workloads.setdefault(row.workload, Tally()).add(amount, quantity)


def _iron_key(row: Iron, line_type: str) -> LineKey:
    return LineKey(line_type, cluster=row.cluster, namespace=row.namespace or "")


def by_place(used: Used) -> Ledger:
    """Return direct and other cost by place, whatever pool it was taken from."""
    ledger = Ledger()
    for (_, place, key), tally in used.direct.items():
        ledger[Entry("direct", place, key)].absorb(tally)
    for entry, tally in used.other.items():
        ledger[entry].absorb(tally)
    return ledger
