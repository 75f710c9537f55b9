"""HyperNodes as plain data, and the labels in which they are kept. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from queues.labels import tier_label, tier_of

GROUP, VERSION, KIND = "topology.volcano.sh", "v1alpha1", "HyperNode"
TOPOLOGY = "hypernodes"
NODE = "Node"


@dataclass(frozen=True, slots=True)
class Member:
    """Whom a HyperNode holds: ``kind`` Node or HyperNode, chosen by one of the three."""

    kind: str
    path: str
    exact: str = ""
    pattern: str = ""
    labels: Mapping[str, str] | None = None

    def takes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether it chooses something called so, with such labels."""
        if self.exact:
            return name == self.exact
        if self.pattern:
            return re.search(self.pattern, name) is not None
        return (self.labels or {}).items() <= labels.items()


@dataclass(frozen=True, slots=True)
class HyperNodeSpec:
    """The desired state of one HyperNode; tier 1 is the closest to the nodes."""

    name: str
    tier: int
    tier_name: str
    members: tuple[Member, ...]

    @property
    def key(self) -> str:
        """Return the label of nodes that says in which HyperNode of this tier they are."""
        return tier_label(self.tier, self.tier_name)


def outermost_first(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the labels of HyperNodes as the levels of a topology."""
    return tuple(sorted(keys, key=lambda key: tier_of(key) or (0, ""), reverse=True))
