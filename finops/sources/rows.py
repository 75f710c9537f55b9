"""What the sources know, as plain rows: the same fields as the tables that keep them. Pure.

Costs are in the currency that the source is declared to count in. A number that a source does
not know is None where it is an average, and 0 with a note where it is a cost or an amount.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from hashlib import sha256

from finops.sources.failures import Note

ZERO = Decimal(0)
IDLE, UNMOUNTED, UNALLOCATED = "__idle__", "__unmounted__", "__unallocated__"
Measures = Mapping[str, Decimal]


def natural_key(*parts: str) -> str:
    """Return one short key for texts of any length; equal for equal parts only."""
    found = sha256()
    for part in parts:
        encoded = part.encode()
        found.update(len(encoded).to_bytes(4, "big"))
        found.update(encoded)
    return found.hexdigest()


@dataclass(frozen=True, slots=True)
class Cost:
    """A row of OpenCost's allocation: what a namespace, controller, label ... cost in a day.

    ``first_at`` and ``last_at`` are when its pods were seen. Adjustments are in the costs;
    ``other_cost`` is what OpenCost calls shared and external.
    """

    key: str
    cluster: str
    namespace: str
    first_at: datetime
    last_at: datetime
    node: str = ""
    controller_kind: str = ""
    controller: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    gpu_hours: Decimal = ZERO
    cpu_hours: Decimal = ZERO
    gib_hours: Decimal = ZERO
    gpu_cost: Decimal = ZERO
    cpu_cost: Decimal = ZERO
    ram_cost: Decimal = ZERO
    pv_cost: Decimal = ZERO
    network_cost: Decimal = ZERO
    lb_cost: Decimal = ZERO
    other_cost: Decimal = ZERO
    gpu_efficiency: Decimal | None = None

    @property
    def total_cost(self) -> Decimal:
        """Everything it cost."""
        iron = self.gpu_cost + self.cpu_cost + self.ram_cost
        return iron + self.pv_cost + self.network_cost + self.lb_cost + self.other_cost

    @property
    def is_idle(self) -> bool:
        """Whether it is what nobody used; bills never use such a row."""
        return self.namespace == IDLE


@dataclass(frozen=True, slots=True)
class Asset:
    """A node or a disk as OpenCost priced it for a day: capacity, whoever used it."""

    key: str
    kind: str  # Node, Disk, ...
    cluster: str
    name: str
    gpu_hours: Decimal = ZERO
    cpu_hours: Decimal = ZERO
    gib_hours: Decimal = ZERO  # of memory; of a disk: of storage
    gpu_cost: Decimal = ZERO
    cpu_cost: Decimal = ZERO
    ram_cost: Decimal = ZERO
    total_cost: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class ListPrice:
    """An hour on a class of machines as the price list of OpenCost has it; None: not listed."""

    name: str
    gpu_hour: Decimal | None = None
    cpu_hour: Decimal | None = None
    gib_hour: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One request as LiteLLM logged it. ``team_id`` "" is no team; spend as logged, never mended.

    ``breakdown_cost`` is what LiteLLM worked out beside it: streamed requests may have a spend
    of 0 and the right cost there (finops.md 3.4). ``is_internal``: a health check or a silent
    experiment. Tokens of failures and cache hits are kept, and are not billable.
    """

    key: str
    request_id: str
    at: datetime
    team_id: str
    key_hash: str
    model: str
    team_alias: str = ""
    key_alias: str = ""
    model_group: str = ""
    model_id: str = ""
    call_type: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cache_read_tokens: int = 0
    spend: Decimal = ZERO
    breakdown_cost: Decimal | None = None
    cache_hit: bool = False
    failed: bool = False
    is_internal: bool = False
    tags: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def is_billable(self) -> bool:
        """Whether its tokens were served and cost something."""
        return not (self.failed or self.cache_hit)


@dataclass(frozen=True, slots=True)
class TeamDay:
    """What LiteLLM added up itself for a UTC day; a check of the requests, never billed."""

    key: str
    team_id: str
    model_group: str = ""
    model: str = ""
    key_hash: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 0
    failures: int = 0
    spend: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class GpuUse:
    """How busy one GPU was in a day while a pod held it; "" is nobody, or nobody knows.

    ``sampled_gpu_hours`` is the time that was measured at all: a gap is no idle time.
    ``idle_gpu_hours``: of it, the time under the threshold of use that was long enough to count.
    """

    key: str
    node: str
    gpu: str
    namespace: str = ""
    pod: str = ""
    sampled_gpu_hours: Decimal = ZERO
    busy_gpu_hours: Decimal = ZERO
    idle_gpu_hours: Decimal = ZERO


@dataclass(frozen=True, slots=True)
class NodePrice:
    """What a GPU-hour of a node cost in a day as the exporter of OpenCost resolved it."""

    key: str
    node: str
    gpu_hour: Decimal
    lowest: Decimal
    highest: Decimal


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source said about one window.

    ``measures`` say how much it is, so that two readings of a day can be compared.
    """

    rows: tuple["Row", ...]
    measures: Measures
    notes: tuple[Note, ...] = ()
    price_list: tuple[ListPrice, ...] = ()


Row = Cost | Asset | Request | TeamDay | GpuUse | NodePrice


def iron_measures(rows: Iterable[Row]) -> Measures:
    """Return GPU-hours and cost of what was used, and capacity.

    Idle shrinks where use grows, so it is left out.
    """
    found = list(rows)
    used = [row for row in found if isinstance(row, Cost) and not row.is_idle]
    nodes = [row for row in found if isinstance(row, Asset)]
    return {
        "gpu_hours": sum((row.gpu_hours for row in used), ZERO),
        "cost": sum((row.total_cost for row in used), ZERO),
        "capacity_gpu_hours": sum((row.gpu_hours for row in nodes), ZERO),
    }


def token_measures(rows: Iterable[Row]) -> Measures:
    """Return how many requests there are, their tokens and what was spent."""
    found = [row for row in rows if isinstance(row, Request)]
    return {
        "requests": Decimal(len(found)),
        "tokens": Decimal(sum(row.tokens for row in found)),
        "spend": sum((row.spend for row in found), ZERO),
    }


def use_measures(rows: Iterable[Row]) -> Measures:
    """Return how much was sampled."""
    found = (row.sampled_gpu_hours for row in rows if isinstance(row, GpuUse))
    return {"sampled_gpu_hours": sum(found, ZERO)}
