"""The ground all steps of a bill stand on: slots, what is in force in them, and the metering."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain

from finops.allocation.facts import Capacity, Facts, Instant, Iron, Price, Quota, Usage
from finops.allocation.ledger import Pool, Resource
from finops.allocation.loans import Metered, meter
from finops.allocation.ownership import Owners
from finops.allocation.timeline import Coverage, InForce, Slots, Span, edges, local_date, midnights


@dataclass(frozen=True, slots=True)
class Ground:
    """Facts with everything that is looked up in them."""

    facts: Facts
    slots: Slots
    days: tuple[int, ...]  # by slot: which local day idle is shared in, 0 throughout where none
    dates: tuple[date, ...]  # by slot, where a bill is told day by day; else empty
    owners: Owners
    prices: InForce[str, Price]
    loaded: "Loaded"
    metered: tuple[Metered, ...]

    def start(self, slot: int) -> Instant:
        """Return the instant whose answers hold for all of a slot."""
        return self.slots.starts[slot]

    def price(self, flavor: str, slot: int) -> Price:
        """Return the price of a flavor in a slot; ``checks`` made sure that there is one."""
        found = self.prices.at(flavor, self.start(slot))
        assert found, f"no price of {flavor}"
        return found

    def pool(
        self, cluster: str, node: str | None, slot: int, resource: Resource, flavor: str = ""
    ) -> Pool:
        """Return the pool that a piece of capacity or of direct cost belongs to."""
        by_node = self.facts.policy.idle_scope == "node"
        return Pool(
            cluster,
            (node or "") if by_node else "",
            self.days[slot],
            self.loaded.billed(cluster, self.start(slot)),
            resource,
            self.named(flavor),
        )

    def named(self, flavor: str) -> str:
        """Return the flavor where idle is counted flavor by flavor, else ""."""
        return flavor if self.facts.policy.idle_scope == "flavor" else ""


class Loaded:
    """Which time of which source was really loaded; a source without loads is not asked."""

    def __init__(self, facts: Facts) -> None:
        self._billed = "usage" if facts.policy.usage_source == "scheduler" else "iron"
        self._windows: dict[tuple[str, str], Coverage] = {}
        self.sources = sorted({load.source for load in facts.loads})
        self._clusters = _clusters(facts)
        for load in facts.loads:
            touched = {"", *self._clusters} if load.cluster is None else {load.cluster}
            for cluster in touched:
                windows = self._windows.setdefault((load.source, cluster), Coverage())
                windows.add(Span(load.start, load.end))

    def billed(self, cluster: str, at: Instant) -> bool:
        """Return whether the billed source was loaded for a cluster at an instant."""
        if self._billed not in self.sources:
            return True
        found = self._windows.get((self._billed, cluster))
        return found is not None and found.holds(at)

    def coverage(self, source: str, cluster: str = "") -> Coverage:
        """Return what was loaded of a source, for a cluster where it has one."""
        return self._windows.get((source, cluster), Coverage())

    def edges(self, facts: Facts) -> Iterator[Instant]:
        """Yield the instants where the billed source begins or ends to be loaded."""
        for (source, _), windows in self._windows.items():
            if source == self._billed:
                for one in windows.within(facts.period):
                    yield from one


def _clusters(facts: Facts) -> set[str]:
    listed: tuple[Sequence[Capacity | Usage | Quota | Iron], ...] = (
        facts.capacity,
        facts.usage,
        facts.quotas,
        facts.iron,
    )
    return {row.cluster for rows in listed for row in rows}


def ground(facts: Facts, *, by_day: bool = False) -> Ground:
    """Cut the period and meter it; ``by_day`` at every local midnight as well."""
    loaded = Loaded(facts)
    shares_by_day = facts.policy.idle_basis == "day"
    days = midnights(facts.period) if by_day or shares_by_day else []
    dated = (facts.mappings, facts.namespaces, facts.prices, facts.shared)
    cuts = [*edges(chain(*dated)), *loaded.edges(facts), *days]
    slots = Slots(facts.period, cuts)
    return Ground(
        facts=facts,
        slots=slots,
        days=tuple(_days(slots, days if shares_by_day else [])),
        dates=tuple(local_date(facts.period, start) for start in slots.starts) if by_day else (),
        owners=Owners(facts),
        prices=InForce((price.flavor, price) for price in facts.prices),
        loaded=loaded,
        metered=tuple(meter(facts, slots)),
    )


def _days(slots: Slots, days: list[Instant]) -> Iterator[int]:
    """Yield for each slot how many midnights lie before it; slots are cut at each."""
    passed = 0
    for start in slots.starts:
        while passed < len(days) and days[passed] <= start:
            passed += 1
        yield passed
