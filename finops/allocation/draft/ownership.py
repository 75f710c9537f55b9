"""Idle nominal of each queue, instant by instant (finops.md 5, FORMAT.md 4).

Between two events everything is constant, so the sums are exact. At each instant, with
``c`` capacity, ``u`` held, ``i`` nominal not held and ``net`` = i - lent, both per queue:
c = sum u + sum net + unquota - over.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from finops.allocation.draft.facts import Facts, Window
from finops.allocation.draft.metering import clip
from finops.allocation.draft.pricing import PriceList
from finops.allocation.draft.tally import (
    IDLE,
    OVER_ALLOCATION,
    PLATFORM,
    UNALLOCATED_QUEUE,
    Ledger,
    LineKey,
    owner_account,
)

Gauge = tuple[str, str, str | None]  # measure, queue, team of the quota
Changes = dict[datetime, Counter[Gauge]]
Number = Fraction | int  # GPUs; scaled ones are fractions


@dataclass(slots=True)
class _Levels:
    """GPUs of one flavor at one instant."""

    gauges: Counter[Gauge] = field(default_factory=Counter)

    def apply(self, changes: Counter[Gauge]) -> None:
        """Raise and lower gauges; one that is back at zero is forgotten."""
        for gauge, gpus in changes.items():
            self.gauges[gauge] += gpus
            if not self.gauges[gauge]:
                del self.gauges[gauge]

    def total(self, measure: str) -> int:
        return sum(gpus for (name, _, _), gpus in self.gauges.items() if name == measure)

    def by_queue(self, measure: str) -> dict[str, int]:
        return {queue: gpus for (name, queue, _), gpus in self.gauges.items() if name == measure}

    def owners(self) -> dict[str, str | None]:
        return {queue: team for name, queue, team in self.gauges if name == "nominal"}

    def net_idle(self) -> dict[str, Number]:
        """Return idle nominal not lent, scaled where quotas promise more than is there."""
        held, lent = self.by_queue("held"), self.by_queue("lent")
        net = {
            queue: max(0, max(0, nominal - held.get(queue, 0)) - lent.get(queue, 0))
            for queue, nominal in self.by_queue("nominal").items()
        }
        room, net_sum = max(0, self.room()), sum(net.values())
        if net_sum <= room:
            return dict(net)
        # Whole numbers where possible: a full cluster is common, and fractions are slow.
        return {
            queue: Fraction(gpus * room, net_sum) if room else 0 for queue, gpus in net.items()
        }

    def room(self) -> int:
        return self.total("capacity") - self.total("used")


def owner_idle(facts: Facts, prices: PriceList, *, repay_lent: bool) -> Ledger:
    """Return idle by owner: each queue's team pays its nominal that nobody held.

    With ``repay_lent`` the owner also pays what it lent (the policy ``owner``); the borrower
    paid that too, so it comes back as ``loan_income`` of the platform. Capacity in no quota
    stays central; use beyond capacity is over-allocation.
    """
    ledger = Ledger()
    for key, gpus, window in _borne(facts, repay_lent=repay_lent):
        for piece in prices.pieces(key.flavor, window):
            ledger[key].charge(gpus, piece)
    for key, tally in ledger.items():
        # Shown as the lent hours given back: the hours are positive, the money is not.
        if key.kind == "loan_income":
            tally.gpu_hours = -tally.gpu_hours
    return ledger


def _borne(facts: Facts, *, repay_lent: bool) -> Iterator[tuple[LineKey, Number, Window]]:
    """Give what each line bears, in GPUs, for as long as it stays the same.

    An event touches few queues: pricing only what changed keeps 50 queues as cheap as one.
    """
    billed_teams = facts.billed_teams
    running: dict[LineKey, tuple[Number, datetime]] = {}
    for flavor, start, levels in _levels_at_changes(facts):
        rows = _rows(levels, flavor, billed_teams, repay_lent=repay_lent)
        ended = [key for key in running if key not in rows]
        for key, gpus in [*rows.items(), *((key, 0) for key in ended)]:
            before, since = running.get(key, (0, start))
            if gpus != before:
                if before:
                    yield key, before, Window(since, start)
                running[key] = (gpus, start)
        for key in ended:
            del running[key]


def _rows(
    levels: _Levels, flavor: str, billed_teams: frozenset[str], *, repay_lent: bool
) -> dict[LineKey, Number]:
    """Return what each line bears at one instant, in GPUs."""
    owners, net_idle, room = levels.owners(), levels.net_idle(), levels.room()
    rows: dict[LineKey, Number] = {
        LineKey("idle", IDLE, "idle", flavor): max(0, room - sum(net_idle.values())),
        LineKey("over_allocation", OVER_ALLOCATION, "over_allocation", flavor): min(0, room),
    }
    owned = dict(net_idle)
    if repay_lent:
        for queue, gpus in levels.by_queue("lent").items():
            owned[queue] = owned.get(queue, 0) + gpus
            rows[LineKey("idle", PLATFORM, "loan_income", flavor, queue)] = -gpus
    for queue, owned_gpus in owned.items():
        team = owners.get(queue)
        account = owner_account(team, queue, billed_teams) if team else UNALLOCATED_QUEUE
        key = LineKey("idle", account, "idle_owned", flavor)
        rows[key] = rows.get(key, 0) + owned_gpus
    return rows


def _levels_at_changes(facts: Facts) -> Iterator[tuple[str, datetime, _Levels]]:
    """Give the levels from each event on, flavor by flavor; after the last all are zero."""
    changes_by_flavor: dict[str, Changes] = {}
    for flavor, gauge, gpus, window in _gauged(facts):
        changes = changes_by_flavor.setdefault(flavor, defaultdict(Counter))
        changes[window.start][gauge] += gpus
        changes[window.end][gauge] -= gpus
    for flavor, changes in sorted(changes_by_flavor.items()):
        levels = _Levels()
        for instant in sorted(changes):
            levels.apply(changes[instant])
            yield flavor, instant, levels
        assert not levels.gauges, "every level that rises in the period falls by its end"


def _gauged(facts: Facts) -> Iterator[tuple[str, Gauge, int, Window]]:
    """Give every fact as levels of gauges inside the period."""
    period = facts.period.window
    levels: list[tuple[str, Gauge, int, Window | None]] = [
        (
            fact.flavor,
            ("capacity", "", None),
            fact.gpus,
            clip(fact.start, fact.end, period),
        )
        for fact in facts.capacity
    ]
    for quota in facts.quotas:
        gauge = ("nominal", quota.queue, quota.team)
        part = clip(quota.start, quota.end, period)
        levels.append((quota.flavor, gauge, quota.nominal, part))
    for use in facts.usage:
        part = clip(use.start, use.end, period)
        levels.append((use.flavor, ("used", "", None), use.gpus, part))
        if use.holding == "nominal":
            levels.append((use.flavor, ("held", use.queue, None), use.gpus, part))
        elif use.holding == "borrowed" and use.lender:
            levels.append((use.flavor, ("lent", use.lender, None), use.gpus, part))
    for flavor, gauge, gpus, window in levels:
        if window is not None and gpus:
            yield flavor, gauge, gpus, window
