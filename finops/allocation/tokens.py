"""Rows of tokens: whose, of which deployment, at what cost (FORMAT.md 3.3)."""

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from finops.allocation.facts import Deployment, NamespaceBilling, Number, TokenPrice, TokenUse
from finops.allocation.ground import Ground
from finops.allocation.ledger import Ledger, LineKey
from finops.allocation.money import Sum
from finops.allocation.places import Account
from finops.allocation.timeline import InForce

MILLION = 1_000_000

Served = tuple[str, str]  # cluster and namespace
Weights = dict[Account, Number]


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A row in the period. ``tokens`` and ``cost`` are 0 where it is not billable.

    ``listed`` is the cost at list price, None without one; ``mode`` is None without deployment.
    """

    use: TokenUse
    account: Account
    is_billable: bool
    tokens: int
    cost: Number
    listed: Number | None
    deployment: Deployment | None
    mode: NamespaceBilling | None

    @property
    def is_on_prem(self) -> bool:
        """Whether it ran on iron of ours."""
        return self.mode is not None and self.mode != "external"

    @property
    def is_nobodys(self) -> bool:
        """Whether no team is known for it."""
        return self.account.is_bucket

    @property
    def served_by(self) -> Served:
        """The cluster and namespace that served it."""
        assert self.deployment
        return self.deployment.cluster, self.deployment.namespace


def token_rows(ground: Ground) -> list[TokenRow]:
    """Return the rows that count in the period, priced at their instants."""
    period = ground.facts.period
    prices = InForce((price.model_group, price) for price in ground.facts.token_prices)
    deployments = InForce((row.model_group, row) for row in ground.facts.deployments)
    return [
        _row(
            ground,
            use,
            prices.at(use.model_group, use.instant),
            deployments.at(use.model_group, use.instant),
        )
        for use in ground.facts.tokens
        if period.start <= use.instant < period.end
    ]


def _row(
    ground: Ground, use: TokenUse, price: TokenPrice | None, deployment: Deployment | None
) -> TokenRow:
    at = use.instant
    is_billable = use.status == "success" and not use.cache_hit
    tokens = use.prompt_tokens + use.completion_tokens if is_billable else 0
    listed = _listed(use, price) if price else None
    cost = use.spend or (tokens and listed) or 0
    return TokenRow(
        use=use,
        account=ground.owners.of_tokens(use.team_id, at),
        is_billable=is_billable,
        tokens=tokens,
        cost=cost if is_billable else 0,
        listed=listed,
        deployment=deployment,
        mode=ground.owners.mode(deployment.cluster, deployment.namespace, at)
        if deployment
        else None,
    )


def _listed(use: TokenUse, price: TokenPrice) -> Number:
    cost = (
        use.prompt_tokens * price.input_per_million
        + use.completion_tokens * price.output_per_million
    )
    return Fraction(cost) / MILLION


def weight(ground: Ground, row: TokenRow) -> Number:
    """Return how much a row weighs when the iron that served it is divided."""
    match ground.facts.policy.token_weight:
        case "spend":
            return row.cost
        case "tokens":
            return row.tokens
        case "gpu_seconds":
            deployment = row.deployment
            assert deployment is not None
            assert deployment.tokens_per_second
            assert deployment.gpus
            return Fraction(row.tokens) / deployment.tokens_per_second * deployment.gpus


def serving_weights(ground: Ground, rows: list[TokenRow]) -> dict[Served, Weights]:
    """Return by namespace what accounts weigh with rows of its time as ``serving_shared``."""
    found: dict[Served, dict[Account, Sum]] = defaultdict(lambda: defaultdict(Sum))
    for row in rows:
        if row.mode == "serving_shared":
            found[row.served_by][row.account].add(weight(ground, row))
    return {
        served: {account: summed.total for account, summed in sums.items()}
        for served, sums in found.items()
    }


def bill_external(rows: list[TokenRow], ledger: Ledger) -> None:
    """Write what outside providers are paid into ``ledger``: real money on top of the iron."""
    for row in rows:
        if row.mode == "external":
            key = LineKey("tokens_external", model_group=row.use.model_group)
            ledger.add("external", row.account, key, row.cost, row.tokens)
