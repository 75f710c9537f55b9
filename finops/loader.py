"""Everything a bill rests on, from rows to facts: metering, prices, mappings, sources."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

from django.db.models import Min

from finops import mapping_facts, source_facts
from finops.allocation.facts import (
    AccountingMode,
    Facts,
    IdlePolicy,
    Period,
    Policy,
    Quota,
    Usage,
    UsageSource,
    instant,
    moment,
)
from finops.allocation.facts import Mapping as Owner
from finops.allocation.facts import Price as PriceFact
from finops.allocation.facts import (
    Team as TeamFact,
)
from finops.allocation.findings import Finding
from finops.allocation.money import HOURS_PLACES, RATE_PLACES, ZERO, exact, round_half_up
from finops.allocation.ownership import Owners, marks_of_iron, marks_of_usage
from finops.allocation.places import IDLE_NAMESPACE, Account
from finops.allocation.timeline import InForce, Slots, edges, hours, inside
from finops.metered_facts import (
    GPU,
    capacity_facts,
    cohort_lenders,
    gpu_rows,
    quota_fact,
    quota_facts,
    rows_inside,
    usage_facts,
)
from finops.models import BillingPeriod, Source
from finops.models.sources import Plane
from finops.price_facts import free_fillers, price_facts, unpriced
from finops.shared_facts import shared_facts
from finops.specs import NodeShape
from finops.window_rows import read_window
from gpuplatform.common.together import instances, read_together, whole
from queues.models import OwnedKind, ResourceFlavor, Team
from scheduling.models import CapacityInterval, Node, QuotaInterval, UsageInterval

SHARED_OVER_ALL = frozenset({"proportional", "even"})
MILLICORES = 1000
GIB = 1024**3
# Choices of a policy that are numbers, and those that are words.
NUMBERS = ("borrow_surcharge", "lender_credit")
WORDS = ("idle_scope", "idle_basis", "preempted", "token_weight", "tokens_without_team")


@dataclass(frozen=True, slots=True)
class MonthFacts:
    """The facts of a window, and what of it no price covers: GPU-hours by source and flavor.

    Hours without a price are billed at 0, which is never what was meant: a finding says so.
    ``cluster`` is the one that we schedule; ``rests_on`` says of each source how much is there.
    ``cohort_lenders`` names the cohort that lent of its own quota, by borrowing queue and flavor.
    """

    facts: Facts
    unpriced: dict[tuple[str, str], Fraction]
    cluster: str = ""
    rests_on: tuple[dict[str, Any], ...] = ()
    findings: tuple[Finding, ...] = field(default_factory=tuple)
    cohort_lenders: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def under(self, idle: IdlePolicy, **changes: Any) -> Facts:
        """Return the facts as the product bills them with an idle policy.

        What is shared is shared over the whole cluster (decisions.md 6); idle of our own metering
        that stays a row of its own is counted and shown flavor by flavor.
        """
        policy = replace(self.facts.policy, idle=idle, **changes)
        by_flavor = policy.usage_source == "scheduler" and idle not in SHARED_OVER_ALL
        if by_flavor and policy.idle_scope == "cluster":
            policy = replace(policy, idle_scope="flavor")
        return replace(self.facts, policy=policy)


def load_facts(period: BillingPeriod, until: datetime) -> MonthFacts:
    """Return everything the bill of ``period`` rests on, up to ``until`` where that is earlier.

    A draft of a month that is still going on bills what has passed of it and no more.
    ``until`` must lie after the period's beginning.
    """
    window = _period(period, until)
    return replace(load_window(window, policy_of(period)), cohort_lenders=cohort_lenders(window))


def policy_of(period: BillingPeriod) -> Policy:
    """Return the choices of a period, but for idle."""
    chosen: dict[str, Any] = {name: period.policy[name] for name in WORDS if name in period.policy}
    chosen |= {
        name: exact(Decimal(period.policy[name])) for name in NUMBERS if name in period.policy
    }
    return Policy(usage_source=cast("UsageSource", period.usage_source), **chosen)


def load_window(
    window: Period,
    policy: Policy,
    keys: Iterable[str] = (),
    name: source_facts.Naming | None = None,
) -> MonthFacts:
    """Return everything that the cost of any window rests on, in a fixed number of queries.

    Where OpenCost's hours are billed, a window that is going on ends with its last whole day.
    ``keys`` are labels and annotations to tell, besides those that mappings ask for; ``name``
    names rows of cost.
    """
    known, *answers = read_together(
        whole(Source.objects.all()), *mapping_facts.ask_of_mappings(window)
    )
    told = mapping_facts.told(answers)
    modes = {team.name: team.accounting_mode for team in told.teams}
    sources, foreign = source_facts.counting_sources(instances(Source, known), window.currency)
    billed = Plane.IRON.value if policy.usage_source == "opencost" else ""
    if billed:
        window = _whole_days(window, sources)
    cluster = source_facts.own_cluster(sources)
    mapped = mapping_facts.mapped(window, cluster, told)
    asked = {*keys, *(one.key for one in mapped.owners if one.key)}
    rows = read_window(window)
    capacity, usage = capacity_facts(rows.capacity, cluster), usage_facts(window, cluster, asked)
    flavors = {row.flavor for row in capacity} | {row.flavor for row in usage}
    prices = list(price_facts(window, flavors, rows.prices))
    fillers = list(free_fillers(window, prices, flavors))
    said = source_facts.loaded(window, sources, rows, cluster, billed=billed, name=name)
    facts = Facts(
        period=window,
        teams=(),
        policy=policy,
        mappings=mapped.owners,
        namespaces=mapped.modes,
        deployments=mapped.deployments,
        prices=(*prices, *fillers),
        capacity=capacity,
        usage=usage,
        quotas=quota_facts(rows.quotas, cluster),
        iron=said.iron,
        tokens=said.tokens,
        token_prices=said.token_prices,
        loads=said.loads,
        shared=shared_facts(window, rows.shared),
    )
    teams = _billed_teams(facts, mapped.cost_centers, modes)
    return MonthFacts(
        replace(facts, teams=teams, shared=facts.shared if teams else ()),
        unpriced(window, fillers, {"capacity": capacity, "usage": usage}),
        cluster,
        said.rests_on,
        source_facts.other_currency(foreign),
    )


def with_other_use(
    month: MonthFacts, usage: tuple[Usage, ...], quotas: tuple[Quota, ...]
) -> MonthFacts:
    """Return the facts of a window as if it had been used and promised so; teams follow."""
    facts = replace(month.facts, usage=usage, quotas=quotas)
    cost_centers = {team.id: team.cost_center or "" for team in month.facts.teams}
    teams = _billed_teams(facts, cost_centers, _modes())
    return replace(month, facts=replace(facts, teams=teams))


def _whole_days(window: Period, sources: list[Any]) -> Period:
    ends = [
        instant(source_facts.due_until(one, moment(window.end)))
        for one in sources
        if one.plane == Plane.IRON and one.enabled
    ]
    end = min([window.end, *ends])
    return replace(window, end=end) if end > window.start else window


def _period(period: BillingPeriod, until: datetime | None = None) -> Period:
    end = period.ends_at if until is None else min(period.ends_at, until)
    return Period(instant(period.starts_at), instant(end), period.time_zone, period.currency)


def window_of(period: BillingPeriod) -> Period:
    """Return the whole of a month as facts have it."""
    return _period(period)


def has_facts(period: BillingPeriod) -> bool:
    """Return whether anything was there or was held in the period."""
    window = _period(period)
    return (
        rows_inside(UsageInterval.objects.all(), window).exists()
        or rows_inside(CapacityInterval.objects.all(), window).exists()
    )


def known_flavors() -> list[str]:
    """Return the flavors that exist, and those that GPUs were metered under, by name."""
    names = set(ResourceFlavor.objects.values_list("name", flat=True))
    # Without an order: the model's own would make every row distinct.
    for rows in (CapacityInterval.objects.all(), UsageInterval.objects.all()):
        names |= set(rows.order_by().values_list("flavor", flat=True).distinct())
    return sorted(names - {""})


def first_metered_at() -> datetime | None:
    """Return the beginning of the oldest fact about GPUs, or None where nothing was metered."""
    found = [
        gpu_rows(UsageInterval.objects.all()).aggregate(first=Min("started_at")),
        gpu_rows(CapacityInterval.objects.all()).aggregate(first=Min("started_at")),
    ]
    return min((row["first"] for row in found if row["first"] is not None), default=None)


@dataclass(frozen=True, slots=True)
class PromisedPart:
    """One factor of what was guaranteed: GPUs x hours x price; ``price`` None is none in force."""

    queue: str
    flavor: str
    nominal: int
    price: Decimal | None
    hours: Decimal
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Promised:
    """What a team's quotas are worth over a month; ``ceiling`` None has no borrowing limit.

    ``parts`` are what ``guaranteed`` was computed from, queue by queue and price by price.
    """

    gpu_hours: Decimal
    guaranteed: Decimal
    ceiling: Decimal | None
    parts: tuple[PromisedPart, ...] = ()


def promised(period: BillingPeriod, team: Team) -> Promised:
    """Return nominal x hours x price of the team's queues, and the same up to their ceilings.

    Where a queue may borrow without limit there is no ceiling.
    """
    return promises(period, [team.pk])[team.pk]


def promises(period: BillingPeriod, teams: Iterable[int]) -> dict[int, Promised]:
    """Return the same for several teams by their ids, in a fixed number of queries."""
    window, wanted = _period(period), list(teams)
    said = mapping_facts.read_mappings(window, OwnedKind.QUEUE)
    names = {team.name: team.pk for team in said.teams if team.pk in wanted}
    owners = [one for one in mapping_facts.queue_owners(window, said) if one.team in names]
    queues = {one.value for one in owners}
    rows = list(rows_inside(QuotaInterval.objects.filter(cluster_queue__in=queues), window))
    facts = list(price_facts(window, {row.flavor for row in rows}))
    prices = InForce((price.flavor, price) for price in facts)
    slots = Slots(window, edges(facts))
    of_team: dict[int, list[Quota]] = {team: [] for team in wanted}
    for quota in (quota_fact(row, "") for row in rows):
        for owner in owners:
            part = _while_owned(quota, owner, window) if owner.value == quota.queue else None
            if part is not None:
                of_team[names[owner.team]].append(part)
    return {team: _promised(quotas, prices, slots) for team, quotas in of_team.items()}


def _while_owned(quota: Quota, owner: Owner, window: Period) -> Quota | None:
    """Return the part of a promise that was made to the owner's team."""
    owned = inside(owner, window)
    part = inside(quota, replace(window, start=owned.start, end=owned.end)) if owned else None
    return replace(quota, start=part.start, end=part.end) if part else None


def _promised(quotas: list[Quota], prices: InForce[str, PriceFact], slots: Slots) -> Promised:
    gpu_hours, guaranteed, ceiling = ZERO, ZERO, ZERO
    lengths: dict[tuple[str, str, int, Fraction | None], list[tuple[int, int]]] = {}
    for quota in quotas:
        for slot, length in slots.of(quota):
            price = prices.at(quota.flavor, slots.starts[slot])
            held = hours(quota.nominal * length)
            at_most = held + hours((quota.borrowing_limit or 0) * length)
            gpu_hours += held
            guaranteed += held * price.gpu_hour if price else 0
            ceiling += at_most * price.gpu_hour if price else 0
            start = max(slots.starts[slot], quota.start or slots.starts[slot])
            at = Fraction(price.gpu_hour) if price else None
            key = (quota.queue, quota.flavor, int(quota.nominal), at)
            lengths.setdefault(key, []).append((start, length))
    unlimited = any(quota.borrowing_limit is None for quota in quotas)
    return Promised(
        gpu_hours=round_half_up(gpu_hours, HOURS_PLACES),
        guaranteed=round_half_up(guaranteed),
        ceiling=None if unlimited else round_half_up(ceiling),
        parts=tuple(_part(*key, found) for key, found in sorted(lengths.items(), key=repr)),
    )


def _part(
    queue: str, flavor: str, nominal: int, price: Fraction | None, found: list[tuple[int, int]]
) -> PromisedPart:
    return PromisedPart(
        queue,
        flavor,
        nominal,
        None if price is None else round_half_up(price, RATE_PLACES),
        round_half_up(hours(sum(length for _start, length in found)), HOURS_PLACES),
        moment(min(start for start, _length in found)),
        moment(max(start + length for start, length in found)),
    )


# ---- who gets a bill ----------------------------------------------------------------------------
def _modes() -> dict[str, str]:
    """Return how each team is accounted for, of all there are."""
    return dict(Team.objects.order_by("name").values_list("name", "accounting_mode"))


def _billed_teams(
    facts: Facts, cost_centers: Mapping[str, str], modes: Mapping[str, str]
) -> tuple[TeamFact, ...]:
    """Return the teams that used something or had a quota, by name."""
    seen = {account.name for account in _accounts(facts) if not account.is_bucket}
    seen |= {team for item in facts.shared for team in item.percentages}
    return tuple(
        TeamFact(
            name,
            cost_center=cost_centers.get(name),
            accounting_mode=cast("AccountingMode", modes[name]),
        )
        for name in sorted(seen & modes.keys())
    )


def _accounts(facts: Facts) -> Iterator[Account]:
    """Yield whose things are, at every instant at which a mapping changes."""
    owners = Owners(facts)
    period = facts.period
    cuts = [period.start, *(at for at in edges(facts.mappings) if period.start < at < period.end)]
    marks = {marks_of_usage(use) for use in facts.usage}
    marks |= {marks_of_iron(row) for row in facts.iron if row.namespace != IDLE_NAMESPACE}
    queues = {(quota.cluster, quota.queue) for quota in facts.quotas}
    asking = {row.team_id for row in facts.tokens}
    for at in cuts:
        yield from (owners.owner(one, at) for one in marks)
        yield from (owners.of_queue(cluster, queue, at) for cluster, queue in queues)
        yield from (owners.of_tokens(team, at) for team in asking)


def node_shape() -> NodeShape | None:
    """Return the size of the commonest kind of known GPU node, or None where none is known."""
    shapes = Counter(
        NodeShape(
            cpus=capacity.get("cpu", 0) // MILLICORES,
            memory_gib=capacity.get("memory", 0) // GIB,
            gpus=capacity[GPU],
        )
        for capacity in Node.objects.values_list("capacity", flat=True)
        if capacity.get(GPU)
    )
    if not shapes:
        return None
    return max(shapes, key=lambda shape: (shapes[shape], shape.gpus, shape.cpus))
