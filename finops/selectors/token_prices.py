"""What a million tokens should cost, from the iron that serves them, beside what is charged."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.db.models import F, Q, Sum

from finops.allocation.findings import DRIFT_CRITICAL, DRIFT_WARNING
from finops.allocation.money import exact, round_half_up
from finops.allocation.node_price import token_price
from finops.metered_facts import gpu_rows
from finops.models import BillingPeriod, Price, TokenRow
from finops.models import Mapping as CostMapping
from finops.models.mappings import MappingKind
from finops.models.prices import PriceUnit
from finops.selectors.prices import PriceBook
from finops.specs import EVERY_FLAVOR
from scheduling.models import UsageInterval

MILLION = 1_000_000
PER_MILLION, PER_TOKEN = 4, 12  # decimals shown
RATIO = 4
LATELY = timedelta(days=31)


@dataclass(frozen=True, slots=True)
class TokenPriceRow:
    """One model. Prices are of a million tokens; None is not known.

    ``full_load`` is the iron at the benchmark's throughput, ``real`` and ``with_idle`` what the
    iron cost over the tokens that were really served. ``charged`` is what LiteLLM logged.
    """

    model: str
    namespace: str
    flavor: str
    tokens_per_second: Decimal | None
    gpus: Decimal | None
    full_load: Decimal | None
    charged: Decimal | None
    declared: tuple[Decimal, Decimal] | None  # of input and output
    real: Decimal | None
    with_idle: Decimal | None

    @property
    def drift(self) -> Decimal | None:
        """By which part what is charged, or else declared, differs from the iron."""
        price = self.charged
        if price is None and self.declared is not None:
            price = max(self.declared)
        if price is None or not self.full_load:
            return None
        return round_half_up(Fraction(price) / Fraction(self.full_load) - 1, RATIO)

    @property
    def level(self) -> str:
        """How far off that is: ok, warning or critical (finops.md 4.4); "" is not known."""
        if self.drift is None:
            return ""
        size = abs(Fraction(self.drift))
        if size > DRIFT_CRITICAL:
            return "critical"
        return "warning" if size > DRIFT_WARNING else "ok"

    @property
    def per_token(self) -> str:
        """The price of one token at full load, as a configuration has it; "" is not known."""
        return "" if self.full_load is None else per_token(self.full_load)

    @property
    def snippet(self) -> str:
        """The lines for LiteLLM's configuration with the price that the iron gives."""
        return litellm_snippet(self.model, self.per_token) if self.full_load else ""


def per_token(per_million: Decimal) -> str:
    """Return the price of one token as plain digits: 0.7778 is 0.0000007778."""
    return f"{round_half_up(Fraction(per_million) / MILLION, PER_TOKEN).normalize():f}"


def litellm_snippet(model: str, price: str) -> str:
    """Return the lines of ``model_list`` that set a price, the same for input and output."""
    return (
        f'  - model_name: "{quoted(model)}"\n'
        "    litellm_params:\n"
        f"      input_cost_per_token: {price}\n"
        f"      output_cost_per_token: {price}\n"
    )


def quoted(text: str) -> str:
    """Return a text as it stands between double quotes in YAML."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def token_price_rows(now: datetime) -> list[TokenPriceRow]:
    """Return every model that is served, priced or was asked for lately; by name."""
    deployments = {
        row.value: row
        for row in CostMapping.objects.filter(
            Q(valid_to=None) | Q(valid_to__gt=now),
            kind=MappingKind.DEPLOYMENT,
            valid_from__lte=now,
        )
    }
    period = BillingPeriod.objects.filter(starts_at__lte=now).order_by("-name").first()
    memo = {row["model_group"]: row for row in period.memo.get("models", ())} if period else {}
    charged, declared = _charged(now), _declared(now)
    book = PriceBook(now)
    flavors = _flavors({row.namespace for row in deployments.values()})
    rows = []
    for model in sorted({*deployments, *declared, *charged}):
        deployment = deployments.get(model)
        namespace = deployment.namespace if deployment else ""
        flavor = flavors.get(namespace, EVERY_FLAVOR)
        price = book.gpu_hour(flavor) or book.only_gpu_hour()
        row = TokenPriceRow(
            model=model,
            namespace=namespace,
            flavor=flavor,
            tokens_per_second=deployment.tokens_per_second if deployment else None,
            gpus=deployment.gpus if deployment else None,
            full_load=_at_full_load(deployment, price),
            charged=charged.get(model),
            declared=declared.get(model),
            real=_real(memo.get(model), "real_per_million_direct"),
            with_idle=_real(memo.get(model), "real_per_million_with_idle"),
        )
        rows.append(row)
    return rows


def _at_full_load(deployment: CostMapping | None, price: Price | None) -> Decimal | None:
    if not (deployment and deployment.tokens_per_second and deployment.gpus and price):
        return None
    return token_price(price.amount * deployment.gpus, deployment.tokens_per_second)


def _real(memo: Mapping[str, Any] | None, name: str) -> Decimal | None:
    text = memo.get(name) if memo else None
    return None if text is None else Decimal(text)


def _charged(now: datetime) -> dict[str, Decimal]:
    """Return by model what LiteLLM logged for a million tokens of the last month."""
    rows = TokenRow.objects.filter(
        at__gte=now - LATELY,
        at__lt=now,
        failed=False,
        cache_hit=False,
        spend__gt=0,
    ).exclude(model_group="")
    sums = rows.order_by().values("model_group")
    tokens = Sum(F("prompt_tokens") + F("completion_tokens"))
    found = sums.annotate(cost=Sum("spend"), tokens=tokens).filter(tokens__gt=0)
    return {
        model: round_half_up(exact(cost) * MILLION / count, PER_MILLION)
        for model, cost, count in found.values_list("model_group", "cost", "tokens")
    }


def _declared(now: datetime) -> dict[str, tuple[Decimal, Decimal]]:
    """Return by model the prices of input and output that are in force."""
    found: dict[str, dict[str, Decimal]] = {}
    rows = Price.objects.filter(
        Q(valid_to=None) | Q(valid_to__gt=now),
        unit__in=(PriceUnit.INPUT_MILLION, PriceUnit.OUTPUT_MILLION),
        valid_from__lte=now,
    )
    for row in rows:
        found.setdefault(row.subject, {})[row.unit] = row.amount
    return {
        model: (prices[PriceUnit.INPUT_MILLION], prices[PriceUnit.OUTPUT_MILLION])
        for model, prices in found.items()
        if len(prices) == 2  # noqa: PLR2004 - input and output
    }


def _flavors(namespaces: set[str]) -> dict[str, str]:
    """Return by namespace the flavor that its work ran on last."""
    rows = gpu_rows(UsageInterval.objects.filter(namespace__in=namespaces))
    return dict(rows.order_by("started_at").values_list("namespace", "flavor").distinct())
