"""What a price should be, as plain data: every door builds one of these. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

EVERY_FLAVOR = "*"  # as a price's subject: every flavor without a price of its own


@dataclass(frozen=True, slots=True)
class PriceSpec:
    """A price of one unit over ``[valid_from, valid_to)``.

    ``unit`` is a ``finops.models.PriceUnit``. ``subject`` is the flavor or the model; "*" is
    every flavor without a price of its own. ``valid_from`` None starts now; ``valid_to`` None
    goes on until another price follows.
    """

    unit: str
    subject: str
    amount: Decimal
    currency: str = "EUR"
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    source: str = "declared"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What one deployment of a model serves at full load, and on how many GPUs.

    ``flavor`` is the flavor whose GPU-hour price applies; "*" is the price for all.
    """

    tokens_per_second: int
    gpus: int
    flavor: str = "*"


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The size of a whole node that is sold by the GPU."""

    cpus: int
    memory_gib: int
    gpus: int


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Another system to read cost or usage from. Secrets stand in the environment only.

    ``kind`` is a ``finops.models.sources.SourceKind``. ``cluster`` is the cluster, or the gateway,
    that it tells about. ``options``: those of ``OPTIONS`` for its kind; an absent one has its
    default. ``first_day`` None: the first of the current month.
    """

    name: str
    kind: str
    url: str = ""
    cluster: str = ""
    currency: str = "EUR"
    options: Mapping[str, Any] = field(default_factory=dict)
    first_day: date | None = None
    enabled: bool = True


# Options of each kind of source, with their defaults, whose type is that of a value.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "opencost": {
        "label_keys": (),  # labels by which cost is told apart, as on the pods
        "annotation_keys": (),
        "by_node": True,  # needed to split idle by node
        "resolution": "",  # of its Prometheus queries, "1m"; "" leaves it to OpenCost
    },
    "litellm_database": {},
    "litellm_api": {},
    "prometheus": {
        "node_label": "Hostname",  # of DCGM's series: the name of the node
        "step_s": 300,
        "team_label": "label_equipo",  # of kube_pod_labels, for the questions of a test
        "idle_below_percent": 5,  # use of a GPU, mean of a step, under which it counts as idle ...
        "idle_after_s": 900,  # ... where it stays so for as long at least
    },
}


@dataclass(frozen=True, slots=True)
class MappingSpec:
    """Whose or what a thing is over ``[valid_from, valid_to)``.

    ``kind`` is a ``finops.models.mappings.MappingKind``; ``value`` is the thing's name, of a
    deployment the model group. ``valid_from`` None: since the end of the last closed month.
    """

    kind: str
    value: str
    team: str = ""
    cluster: str = ""  # "" is every cluster; of a deployment the one that we schedule
    key: str = ""  # of a label or an annotation
    mode: str = ""  # of a namespace: a ``BillingMode``
    namespace: str = ""  # that serves a model
    tokens_per_second: Decimal | None = None
    gpus: Decimal | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    note: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """What may have one mapping at a time (FORMAT.md 1, overlap)."""
        if self.kind == "cost_center":
            return (self.kind, self.team)
        if self.kind == "deployment":
            return (self.kind, self.value)
        return (self.kind, self.cluster, self.key, self.value)
