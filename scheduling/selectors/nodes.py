"""Nodes as the heat map shows them: blocks, racks, nodes, one cell for each GPU."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

from django.db.models import QuerySet

from gpuplatform.common.models import AuditEntry
from gpuplatform.common.together import instances, read_together, whole
from queues.access import Actor
from queues.models import ResourceFlavor, Team, TopologyLevel
from scheduling.engine.machines import GPU
from scheduling.models import Node, Placement
from scheduling.selectors.reservations import kept_on_nodes

SHORT = 6
HOSTNAME = "kubernetes.io/hostname"
NODE_COLUMNS = (
    "node",
    "flavor",
    "block",
    "rack",
    "state",
    "gpus",
    "used",
    "free",
    "kept",
    "teams",
)


class Cell(NamedTuple):
    """One GPU.

    ``kind``: used, other (of somebody else), unmanaged, kept (free, for a gang that waits), free,
    out.
    """

    kind: str
    team: Team | None = None
    letter: str = ""
    same: bool = False  # joined to the cell before: one workload
    more: bool = False  # joined to the cell after


def _joined(kind: str, count: int, team: Team | None = None, letter: str = "") -> list[Cell]:
    return [Cell(kind, team, letter, index > 0, index < count - 1) for index in range(count)]


@dataclass(frozen=True, slots=True)
class Held:
    """What one workload holds on a node. ``workload`` None: the reader may not see it."""

    workload: Any
    team: Team | None
    gpus: int
    pods: int
    pod_set: str = ""
    letter: str = ""  # tells the team from others where colour does not


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One machine and who is on it."""

    node: Node
    flavor: str
    block: str
    rack: str
    gpus: int
    held: tuple[Held, ...] = ()
    unmanaged: int = 0
    reserved: int = 0  # GPUs that are promised to, or held for, a gang that waits

    @property
    def short_name(self) -> str:
        """Return what tells the node from its neighbours: the last part of a long name."""
        name = self.node.name.split(".")[0]
        return name if len(name) <= SHORT else name.rsplit("-", 1)[-1][-SHORT:]

    @property
    def used(self) -> int:
        """Return the GPUs that somebody holds."""
        return sum(held.gpus for held in self.held) + self.unmanaged

    @property
    def is_usable(self) -> bool:
        """Return whether new pods may come here."""
        return self.node.ready and self.node.schedulable

    @property
    def unused(self) -> int:
        """Return the GPUs that nobody holds: free, kept or out."""
        return max(0, self.gpus - self.used)

    @property
    def free(self) -> int:
        """Return the GPUs that anybody may be given now."""
        return self.unused - self.kept - self.out

    @property
    def kept(self) -> int:
        """Return the unused GPUs that wait for a gang; only short work may use them."""
        return min(self.unused, self.reserved) if self.is_usable else 0

    @property
    def out(self) -> int:
        """Return the unused GPUs that nobody may be given: of a node that takes no pods."""
        return 0 if self.is_usable else self.unused

    @property
    def state(self) -> str:
        """Return ``ready``, ``cordoned`` or ``not ready``."""
        if not self.node.ready:
            return "not ready"
        return "ready" if self.node.schedulable else "cordoned"

    @property
    def cells(self) -> list[Cell]:
        """Return one cell for each GPU, those of one workload side by side."""
        cells: list[Cell] = []
        for held in self.held:
            if held.workload is None:
                cells += _joined("other", held.gpus)
            else:
                cells += _joined("used", held.gpus, held.team, held.letter)
        cells += _joined("unmanaged", self.unmanaged)
        rest = max(0, self.gpus - len(cells))
        kept = [Cell("kept")] * min(rest, self.kept)
        return cells + kept + [Cell("free" if self.is_usable else "out")] * (rest - len(kept))

    @property
    def whole(self) -> Cell:
        """Return the node as one cell: who holds most of it, and how much of it is used."""
        words = f"{self.used}/{self.gpus}"
        if not self.used:
            return Cell("free" if self.is_usable else "out", letter=words)
        team, _gpus = max(self.by_team, key=lambda part: part[1])
        return Cell("used" if team else "other", team, words)

    @property
    def by_team(self) -> list[tuple[Team | None, int]]:
        """Return GPUs by team that the reader may see, the rest under None."""
        sums: dict[Team | None, int] = {}
        for held in self.held:
            team = held.team if held.workload is not None else None
            sums[team] = sums.get(team, 0) + held.gpus
        if self.unmanaged:
            sums[None] = sums.get(None, 0) + self.unmanaged
        return list(sums.items())


@dataclass(frozen=True, slots=True)
class Rack:
    """Nodes of one domain below a block."""

    name: str
    nodes: tuple[NodeRow, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes of one outermost domain."""

    name: str
    flavors: str
    racks: tuple[Rack, ...]

    @property
    def count(self) -> int:
        """Return how many nodes stand here."""
        return sum(len(rack.nodes) for rack in self.racks)

    @property
    def widest(self) -> int:
        """Return the GPUs of the largest node."""
        return max((node.gpus for rack in self.racks for node in rack.nodes), default=1)


@dataclass(frozen=True, slots=True)
class Places:
    """Which flavor a node belongs to, and its domains, outermost first."""

    flavors: Sequence[ResourceFlavor]
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def flavor_of(self, labels: Mapping[str, str]) -> ResourceFlavor | None:
        """Return the first flavor, by name, whose labels the node carries."""
        for flavor in self.flavors:
            if flavor.node_labels.items() <= labels.items():
                return flavor
        return None

    def domains_of(self, labels: Mapping[str, str]) -> list[str]:
        """Return the node's domains; the host itself is not one."""
        flavor = self.flavor_of(labels)
        levels = self.levels.get(flavor.topology, ()) if flavor else ()
        return [labels.get(level, "-") for level in levels if level != HOSTNAME]


def asked_of_places() -> tuple[QuerySet[Any, Any], QuerySet[Any, Any]]:
    """Return the questions that :func:`places_of` needs the answers of."""
    rows = TopologyLevel.objects.order_by("topology__name", "position")
    flavors = whole(ResourceFlavor.objects.order_by("name"))
    return rows.values_list("topology__name", "node_label"), flavors


def places_of(told: Iterable[tuple[Any, ...]], flavors: Sequence[tuple[Any, ...]]) -> Places:
    """Return how nodes map to flavors and domains."""
    levels: dict[str, list[str]] = {}
    for name, label in told:
        levels.setdefault(name, []).append(label)
    return Places(instances(ResourceFlavor, flavors), levels)


def read_places() -> Places:
    """Return how nodes map to flavors and domains. 1 query."""
    return places_of(*read_together(*asked_of_places()))


def node_rows(
    actor: Actor, names: Iterable[str] | None = None, kept: Mapping[str, int] | None = None
) -> list[NodeRow]:
    """Return all nodes, or those named, with who is on them. 4 queries, and those of ``kept``.

    ``kept``: the GPUs of each node that reservations name, where somebody knows them already.
    """
    kept = kept_on_nodes() if kept is None else kept
    places = read_places()
    nodes = Node.objects.order_by("name")
    held_on = Placement.objects.filter(admission__released_at=None).exclude(node="")
    if names is not None:
        wanted = list(names)
        nodes, held_on = nodes.filter(name__in=wanted), held_on.filter(node__in=wanted)
    by_node: dict[str, list[Held]] = {}
    held_on = held_on.select_related("admission__workload__team")
    placed = list(held_on.order_by("admission__admitted_at", "id"))
    owners = {row.admission.workload.team for row in placed}
    letters = letters_of(team for team in owners if team is not None)
    for row in placed:
        by_node.setdefault(row.node, []).append(_held(row, actor, letters))
    rows = [_node_row(node, by_node.get(node.name, []), places) for node in nodes]
    return [replace(row, reserved=kept.get(row.node.name, 0)) for row in rows] if kept else rows


def last_cordon(name: str) -> AuditEntry | None:
    """Return who cordoned or drained the node, when and why; None where nobody did. 1 query."""
    entries = AuditEntry.objects.filter(
        subject_kind="Node",
        subject=name,
        action__in=("node.cordoned", "node.drained", "node.uncordoned"),
    )
    last = entries.order_by("-id").first()
    return last if last is not None and last.action != "node.uncordoned" else None


def letters_of(teams: Iterable[Team]) -> dict[Team, str]:
    """Return a letter for each team, its own where two begin alike."""
    letters: dict[Team, str] = {}
    for team in sorted(teams, key=lambda team: team.pk):
        wanted = [letter.upper() for letter in team.name if letter.isalnum()]
        free = [letter for letter in wanted if letter not in letters.values()]
        letters[team] = next(iter([*free, *wanted]), "?")
    return letters


def _held(row: Placement, actor: Actor, letters: Mapping[Team, str]) -> Held:
    workload = row.admission.workload
    team_id = workload.team_id
    seen = actor.sees_everything or (team_id is not None and actor.sees_team(team_id))
    return Held(
        workload=workload if seen else None,
        team=workload.team,
        gpus=int(row.requests.get(GPU, 0)) * row.count,
        pods=row.count,
        pod_set=row.pod_set,
        letter=letters.get(workload.team, "") if workload.team else "",
    )


def _node_row(node: Node, held: list[Held], places: Places) -> NodeRow:
    flavor = places.flavor_of(node.labels)
    domains = places.domains_of(node.labels)
    return NodeRow(
        node=node,
        flavor=flavor.name if flavor else "",
        block=domains[0] if domains else (flavor.name if flavor else ""),
        rack=" / ".join(domains[1:]),
        gpus=int(node.allocatable.get(GPU, 0)),
        held=tuple(held),
        unmanaged=int(node.unmanaged.get(GPU, 0)),
    )


def blocks_of(rows: Iterable[NodeRow]) -> list[Block]:
    """Return nodes in their domains, blocks and racks by name."""
    ordered = sorted(rows, key=lambda row: (row.block, row.rack, row.node.name))
    blocks = []
    for name, in_block in groupby(ordered, key=lambda row: row.block):
        members = list(in_block)
        racks = tuple(
            Rack(rack, tuple(in_rack))
            for rack, in_rack in groupby(members, key=lambda row: row.rack)
        )
        flavors = ", ".join(dict.fromkeys(row.flavor for row in members if row.flavor))
        blocks.append(Block(name, flavors, racks))
    return blocks


def node_cells(rows: Iterable[NodeRow]) -> Iterable[dict[str, Any]]:
    """Yield nodes as rows of an export."""
    for row in rows:
        yield {
            "node": row.node.name,
            "flavor": row.flavor,
            "block": row.block,
            "rack": row.rack,
            "state": row.state,
            "gpus": row.gpus,
            "used": row.used,
            "free": row.free,
            "kept": row.kept,
            "teams": ", ".join(f"{team.name if team else 'other'} {n}" for team, n in row.by_team),
        }


class Legend(NamedTuple):
    """How many GPUs each team holds, and what becomes of the rest."""

    teams: list[tuple[Team, int, str]]
    other: int
    kept: int
    free: int
    out: int


def legend_of(rows: Iterable[NodeRow]) -> Legend:
    """Return the counts that explain the colours, largest team first."""
    rows = list(rows)
    letters = {h.team: h.letter for row in rows for h in row.held if h.team}
    sums: dict[Team, int] = {}
    other = kept = free = out = 0
    for row in rows:
        kept += row.kept
        free += row.free
        out += row.out
        for team, gpus in row.by_team:
            if team is None:
                other += gpus
            else:
                sums[team] = sums.get(team, 0) + gpus
    largest = sorted(sums.items(), key=lambda item: (-item[1], item[0].name))
    return Legend([(team, gpus, letters[team]) for team, gpus in largest], other, kept, free, out)
