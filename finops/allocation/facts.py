"""The facts of one period, as `conformance/finops/FORMAT.md` 1 names them; frozen.

Instants are whole microseconds since 1970-01-01T00:00Z. A window is half-open
``[start, end)``; a bound that is None lies outside every period. Quantities and prices are
exact: whole numbers, or fractions where they are not whole. Money is in the period's currency.
Facts are read from JSON by ``reading``, or built from rows; ``checks`` finds what contradicts.
"""

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Literal

Instant = int
Number = int | Fraction

UsageSource = Literal["scheduler", "opencost"]
IdlePolicy = Literal["separate", "hidden", "proportional", "even", "owner", "owner_net"]
IdleScope = Literal["cluster", "node", "flavor"]
FileIdleScope = Literal["cluster", "node"]  # files of facts know no more
IdleBasis = Literal["period", "day"]
PreemptedPolicy = Literal["borrower", "not_charged", "reclaimer"]
TokenWeight = Literal["spend", "tokens", "gpu_seconds"]
TokensWithoutTeam = Literal["bucket", "owner"]
Detail = Literal["none", "workload"]
AccountingMode = Literal["showback", "chargeback"]
MappingKind = Literal["namespace", "label", "annotation", "litellm_team", "queue"]
NamespaceBilling = Literal["direct", "serving_shared", "serving_priced", "external"]
SharingMethod = Literal["even", "weighted", "fixed"]
TokenStatus = Literal["success", "failure"]
LoadSource = Literal["usage", "iron", "tokens"]

Texts = MappingABC[str, str]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant(moment: datetime) -> Instant:
    """Return an aware ``moment`` in microseconds since 1970, whatever its zone."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(at: Instant) -> datetime:
    """Return the instant ``at`` in UTC."""
    return _EPOCH + at * _MICROSECOND


@dataclass(frozen=True, slots=True)
class Period:
    """What is billed together; days are local days of ``time_zone``."""

    start: Instant
    end: Instant
    time_zone: str = "UTC"
    currency: str = "EUR"


@dataclass(frozen=True, slots=True)
class Policy:
    """The choices of the bill; ``borrow_surcharge`` is a factor, ``lender_credit`` a part.

    ``idle_scope`` "flavor" counts idle of own metering flavor by flavor, and names them.
    """

    usage_source: UsageSource = "scheduler"
    idle: IdlePolicy = "separate"
    idle_scope: IdleScope = "cluster"
    idle_basis: IdleBasis = "period"
    preempted: PreemptedPolicy = "borrower"
    borrow_surcharge: Number = 1
    lender_credit: Number = 0
    token_weight: TokenWeight = "spend"  # noqa: S105 - no password, a way to weigh
    tokens_without_team: TokensWithoutTeam = "bucket"
    detail: Detail = "none"


@dataclass(frozen=True, slots=True)
class Team:
    """Who gets a bill; name and cost centre are carried, not used."""

    id: str
    name: str | None = None
    cost_center: str | None = None
    accounting_mode: AccountingMode = "showback"


@dataclass(frozen=True, slots=True)
class Mapping:
    """To which team a namespace, label, annotation, LiteLLM team or queue belongs, and when."""

    kind: MappingKind
    value: str
    team: str
    cluster: str | None = None
    key: str | None = None
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True, slots=True)
class NamespaceMode:
    """How a namespace is billed while in force; ``direct`` where nothing is said."""

    namespace: str
    mode: NamespaceBilling
    cluster: str | None = None
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True, slots=True)
class Deployment:
    """Which namespace serves a model group, with its benchmark tokens per second."""

    model_group: str
    cluster: str
    namespace: str
    tokens_per_second: Number | None = None
    gpus: Number | None = None
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of one hour of a GPU, a CPU and a GiB on a flavor, while in force."""

    flavor: str
    gpu_hour: Number
    cpu_hour: Number = 0
    gib_hour: Number = 0
    currency: str | None = None
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True, slots=True)
class ResolvedPrice:
    """What the cost source really applied on a node."""

    cluster: str
    node: str
    flavor: str
    gpu_hour: Number
    cpu_hour: Number | None = None
    gib_hour: Number | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """What stands on a node and is paid for, whoever uses it."""

    cluster: str
    node: str
    flavor: str
    gpus: Number
    start: Instant
    cpus: Number = 0
    memory_gib: Number = 0
    end: Instant | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run of a workload held. ``admitted`` None = from its beginning.

    ``preempted`` says that this run ended in eviction; ``reclaimed_by`` is the team it went to.
    """

    workload: str
    cluster: str
    flavor: str
    gpus: Number
    start: Instant
    queue: str | None = None
    namespace: str | None = None
    labels: Texts = field(default_factory=dict)
    annotations: Texts = field(default_factory=dict)
    node: str | None = None
    cpus: Number = 0
    memory_gib: Number = 0
    end: Instant | None = None
    admitted: Instant | None = None
    preempted: bool = False
    reclaimed_by: str | None = None


@dataclass(frozen=True, slots=True)
class Quota:
    """GPUs promised to a queue; a limit of None is unlimited. ``cohort`` is the root cohort."""

    cluster: str
    queue: str
    flavor: str
    nominal: Number
    cohort: str | None = None
    borrowing_limit: Number | None = None
    lending_limit: Number | None = None
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True, slots=True)
class Iron:
    """A row of OpenCost; its hours and costs are spread evenly over its window.

    ``workload`` names it among the children of lines; files of facts have no such field.
    """

    cluster: str
    start: Instant
    end: Instant
    node: str | None = None
    namespace: str | None = None
    labels: Texts = field(default_factory=dict)
    annotations: Texts = field(default_factory=dict)
    gpu_hours: Number = 0
    gpu_cost: Number = 0
    cpu_cost: Number = 0
    ram_cost: Number = 0
    pv_cost: Number = 0
    network_cost: Number = 0
    lb_cost: Number = 0
    currency: str | None = None
    workload: str = ""


@dataclass(frozen=True, slots=True)
class TokenUse:
    """A request, or a UTC day of requests, as LiteLLM counted it; exactly one of at and day."""

    model_group: str
    at: Instant | None = None
    day: Instant | None = None
    request_id: str | None = None
    team_id: str | None = None
    key_alias: str | None = None
    tags: tuple[str, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    spend: Number = 0
    cache_hit: bool = False
    status: TokenStatus = "success"
    currency: str | None = None

    @property
    def instant(self) -> Instant:
        """When it counts: a day's row counts at 00:00Z of that day."""
        found = self.day if self.at is None else self.at
        assert found is not None, "checks: a row has an instant or a day"
        return found


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """Price of a million tokens of a model group, while in force."""

    model_group: str
    input_per_million: Number
    output_per_million: Number
    currency: str | None = None
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """A window that a source was really loaded for; ``cluster`` None = every cluster."""

    source: LoadSource
    start: Instant
    end: Instant
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class SharedItem:
    """A monthly amount, or a namespace, that all teams carry; exactly one of the two."""

    id: str
    method: SharingMethod
    amount: Number | None = None
    namespace: str | None = None
    cluster: str | None = None
    percentages: MappingABC[str, Number] = field(default_factory=dict)
    currency: str | None = None
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True, slots=True)
class Adjustment:
    """A correction of a closed month, in whole cents, of any sign."""

    id: str
    team: str
    amount: Number
    reason: str
    currency: str | None = None
    original_line: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything one bill depends on. The order of rows means nothing."""

    period: Period
    teams: tuple[Team, ...]
    policy: Policy = field(default_factory=Policy)
    mappings: tuple[Mapping, ...] = ()
    namespaces: tuple[NamespaceMode, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    prices: tuple[Price, ...] = ()
    resolved_prices: tuple[ResolvedPrice, ...] = ()
    capacity: tuple[Capacity, ...] = ()
    usage: tuple[Usage, ...] = ()
    quotas: tuple[Quota, ...] = ()
    iron: tuple[Iron, ...] = ()
    tokens: tuple[TokenUse, ...] = ()
    token_prices: tuple[TokenPrice, ...] = ()
    loads: tuple[Load, ...] = ()
    shared: tuple[SharedItem, ...] = ()
    adjustments: tuple[Adjustment, ...] = ()
