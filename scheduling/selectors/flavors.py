"""Kinds of nodes and topologies, with what there is of each."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, ngettext

from gpuplatform.common import clock
from gpuplatform.common.models import AuditEntry
from queues.models import FlavorQuota, ResourceFlavor, Topology
from scheduling.engine.atlas import Atlas
from scheduling.engine.fragments import fragments
from scheduling.engine.machines import GPU
from scheduling.engine.snapshot import Snapshot
from scheduling.loader import load_standing
from scheduling.selectors.fragments import FragmentView

CHANGES = 10
FLAVOR_COLUMNS = ("flavor", "labels", "topology", "policy", "nodes", "gpus", "promised")


@dataclass(frozen=True, slots=True)
class FlavorRow:
    """One kind of node. ``promised``: GPUs of all quotas; ``views``: how usable free ones are."""

    flavor: ResourceFlavor
    nodes: int
    gpus: int
    promised: int
    views: tuple[FragmentView, ...]

    @property
    def labels(self) -> str:
        """Return the labels that tell its nodes, in one line."""
        return ", ".join(f"{key}={value}" for key, value in self.flavor.node_labels.items())


@dataclass(frozen=True, slots=True)
class TopologyRow:
    """One topology: its levels, outermost first, and the flavors that use it."""

    topology: Topology
    levels: tuple[str, ...]
    flavors: tuple[str, ...]


def flavor_rows(snapshot: Snapshot | None = None) -> list[FlavorRow]:
    """Return every kind of node by name. Two queries beside those of the snapshot."""
    snapshot = snapshot or load_standing(clock.now())
    atlas, pieces = Atlas(snapshot), fragments(snapshot)
    promised: Counter[str] = Counter()
    cells = FlavorQuota.objects.filter(resource=GPU).values_list("flavor", "nominal")
    for name, nominal in cells:
        promised[name] += nominal
    rows = []
    for flavor in ResourceFlavor.objects.order_by("name"):
        nodes = atlas.nodes_of(flavor.name)
        views = tuple(FragmentView(p) for p in pieces if p.flavor == flavor.name)
        gpus = sum(node.allocatable.get(GPU, 0) for node in nodes)
        rows.append(FlavorRow(flavor, len(nodes), gpus, promised[flavor.name], views))
    return rows


def flavor_cells(rows: Iterable[FlavorRow]) -> Iterable[dict[str, Any]]:
    """Yield kinds of nodes as rows of an export."""
    for row in rows:
        yield {
            "flavor": row.flavor.name,
            "labels": row.labels,
            "topology": row.flavor.topology,
            "policy": row.flavor.policy,
            "nodes": row.nodes,
            "gpus": row.gpus,
            "promised": row.promised,
        }


def flavors_sentence(rows: Sequence[FlavorRow]) -> str:
    """Say how many kinds of nodes there are, and how many GPUs they have."""
    if not rows:
        return gettext("No flavor yet")
    kinds = ngettext("%(n)d kind of node", "%(n)d kinds of nodes", len(rows)) % {"n": len(rows)}
    empty = sum(not row.nodes for row in rows)
    if empty:
        words = {"kinds": kinds, "n": empty}
        return (
            ngettext(
                "%(kinds)s, %(n)d without any node", "%(kinds)s, %(n)d without any node", empty
            )
            % words
        )
    return kinds


def topology_rows() -> list[TopologyRow]:
    """Return every topology by name. Three queries."""
    users: dict[str, list[str]] = {}
    named = ResourceFlavor.objects.exclude(topology="").order_by("name")
    for name, topology in named.values_list("name", "topology"):
        users.setdefault(topology, []).append(name)
    rows = Topology.objects.prefetch_related("levels").order_by("name")
    return [
        TopologyRow(
            row,
            tuple(level.node_label for level in row.levels.all()),
            tuple(users.get(row.name, ())),
        )
        for row in rows
    ]


def changes_of(kind: str, name: str) -> list[AuditEntry]:
    """Return the last changes of an object, newest first."""
    entries = AuditEntry.objects.filter(subject_kind=kind, subject=name)
    return list(entries.order_by("-id")[:CHANGES])
