"""What a price should be, as plain data: every door builds one of these. Pure."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

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
