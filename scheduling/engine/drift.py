"""What is promised beside what there is: declared, healthy, placeable, and taken by strangers.

Source: ``decisions.md`` 5 (drift).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scheduling.engine.atlas import Atlas
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.tree import quota_tree
from scheduling.engine.usage import is_gpu


@dataclass(frozen=True, slots=True)
class Drift:
    """GPUs of one flavor. ``placeable``: on nodes that take pods, less what strangers hold.

    ``unmanaged``: held by pods outside every queue. ``cordoned``: on nodes that are ready and take
    no new pods. ``away``: nodes that are not ready.
    """

    flavor: str
    resource: str
    promised: int
    declared: int
    healthy: int
    placeable: int
    unmanaged: int
    cordoned: int = 0
    away: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """Return how much more is promised than can be placed."""
        return max(0, self.promised - self.placeable)


def drift(snapshot: Snapshot, outside: Mapping[FlavorResource, int]) -> Iterator[Drift]:
    """Yield how each flavor's GPUs stand, by name.

    ``outside``: what admitted work outside every queue holds. Flavors that have no nodes, and
    never had any, are quota alone and do not drift.
    """
    ledger, atlas = QuotaLedger(quota_tree(snapshot)), Atlas(snapshot)
    promised: Counter[FlavorResource] = Counter()
    for key in ledger.nodes:
        for fr in ledger.nodes[key].quotas:
            promised[fr] += ledger.quota(key, fr).nominal
    for flavor in sorted(snapshot.flavors):
        nodes = atlas.nodes_of(flavor)
        for resource in sorted({r for node in nodes for r in node.allocatable if is_gpu(r)}):
            fr = FlavorResource(flavor, resource)
            strange = sum(node.unmanaged.get(resource, 0) for node in nodes)
            held = sum(n.unmanaged.get(resource, 0) for n in nodes if n.usable)
            yield Drift(
                flavor,
                resource,
                promised[fr],
                declared=sum(n.allocatable.get(resource, 0) for n in nodes),
                healthy=sum(n.allocatable.get(resource, 0) for n in nodes if n.ready),
                placeable=sum(n.allocatable.get(resource, 0) for n in nodes if n.usable)
                - held
                - outside.get(fr, 0),
                unmanaged=strange + outside.get(fr, 0),
                cordoned=sum(
                    n.allocatable.get(resource, 0) for n in nodes if n.ready and not n.usable
                ),
                away=tuple(sorted(node.name for node in nodes if not node.ready)),
            )
