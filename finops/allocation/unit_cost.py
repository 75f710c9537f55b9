"""What on-prem tokens cost against the iron they ran on, by model and by team (FORMAT.md 6)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from finops.allocation import places
from finops.allocation.direct import Used
from finops.allocation.facts import Number
from finops.allocation.ground import Ground
from finops.allocation.idle import Idle
from finops.allocation.money import Sum, exact_sum
from finops.allocation.places import Account, Place, ServingPool
from finops.allocation.sharing import Consumers
from finops.allocation.tokens import MILLION, Served, TokenRow, weight


@dataclass(frozen=True, slots=True)
class UnitCost:
    """Tokens of a model or a team, what was asked for them, and what their iron cost."""

    name: str
    tokens: int
    token_cost: Fraction
    iron_direct: Fraction
    iron_with_idle: Fraction

    def per_million(self, iron: Fraction) -> Fraction | None:
        """Return the real cost of a million tokens, None without tokens."""
        return iron * MILLION / self.tokens if self.tokens else None

    @property
    def recovery(self) -> Fraction | None:
        """Which part of the iron the tokens' price brings back, None without iron."""
        return self.token_cost / self.iron_direct if self.iron_direct else None

    @property
    def drift(self) -> Fraction | None:
        """How far that is from all of it."""
        return None if self.recovery is None else self.recovery - 1


@dataclass(slots=True)
class _Iron:
    direct: Number = Fraction(0)
    with_idle: Number = Fraction(0)

    def add(self, direct: Number, idle: Number = 0) -> None:
        self.direct += direct
        self.with_idle += direct + idle


class ServingIron:
    """The iron of the namespaces that any deployment names, over the whole period."""

    def __init__(self, ground: Ground, used: Used, idle: Idle) -> None:
        self._served = {(row.cluster, row.namespace) for row in ground.facts.deployments}
        self.by_namespace: dict[Served, _Iron] = defaultdict(_Iron)
        self.by_place: dict[Place, _Iron] = defaultdict(_Iron)
        for (_, place, key), tally in used.direct.items():
            self._add((key.cluster, key.namespace), place, tally.amount, 0)
        for share in idle.proportional():
            who = share.weigher
            self._add((who.cluster, who.namespace), who.place, 0, share.amount)

    def _add(self, served: Served, place: Place, direct: Number, idle: Number) -> None:
        if served in self._served:
            self.by_namespace[served].add(direct, idle)
            self.by_place[place].add(direct, idle)


def model_costs(ground: Ground, rows: Iterable[TokenRow], iron: ServingIron) -> list[UnitCost]:
    """Return what each model group's tokens cost, by name; models with on-prem tokens only."""
    weights: dict[Served, dict[str, Sum]] = defaultdict(lambda: defaultdict(Sum))
    asked: dict[str, _Asked] = defaultdict(_Asked)
    for row in rows:
        if row.is_on_prem:
            weights[row.served_by][row.use.model_group].add(weight(ground, row))
            asked[row.use.model_group].add(row)
    borne: dict[str, _Iron] = defaultdict(_Iron)
    for served, sums in weights.items():
        models = {model: summed.total for model, summed in sums.items()}
        total = exact_sum(models.values())
        ours = iron.by_namespace.get(served)
        for model, part in models.items() if ours and total else ():
            assert ours
            direct = ours.direct * part / total
            borne[model].add(direct, ours.with_idle * part / total - direct)
    return [
        _unit_cost(model, asked[model], borne[model])
        for model in sorted(asked)
        if asked[model].tokens
    ]


def team_costs(
    ground: Ground, rows: Iterable[TokenRow], iron: ServingIron, consumers: Consumers
) -> list[UnitCost]:
    """Return what each team's tokens cost, by team; with what it bears of serving pools."""
    asked: dict[Account, _Asked] = defaultdict(_Asked)
    for row in rows:
        if row.is_on_prem:
            asked[row.account].add(row)
    borne = _borne(iron.by_place, consumers)
    found = []
    for team in sorted(team.id for team in ground.facts.teams):
        account = places.team(team)
        cost = _unit_cost(team, asked[account], borne[account])
        if cost.tokens or cost.iron_direct > 0:
            found.append(cost)
    return found


def _borne(by_place: Mapping[Place, _Iron], consumers: Consumers) -> Mapping[Place, _Iron]:
    borne: dict[Place, _Iron] = defaultdict(_Iron)
    for place, iron in by_place.items():
        parts = consumers.parts(place) if isinstance(place, ServingPool) else None
        idle = iron.with_idle - iron.direct
        if parts is None:
            borne[place].add(iron.direct, idle)
            continue
        for account, part in parts.items():
            borne[account].add(iron.direct * part, idle * part)
    return borne


@dataclass(slots=True)
class _Asked:
    tokens: int = 0
    cost: Sum = field(default_factory=Sum)

    def add(self, row: TokenRow) -> None:
        self.tokens += row.tokens
        self.cost.add(row.cost)


def _unit_cost(name: str, asked: _Asked, iron: _Iron) -> UnitCost:
    return UnitCost(
        name,
        asked.tokens,
        asked.cost.total,
        Fraction(iron.direct),
        Fraction(iron.with_idle),
    )
