"""What an admin should look at: promises, drift, nodes; as it is now, and since when."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count, Sum

from gpuplatform.common import reasons
from gpuplatform.common.diagnostics import Diagnostic
from queues.access import Actor
from scheduling.alerting import codes_of, may_read
from scheduling.engine.atlas import Atlas
from scheduling.engine.drift import Drift, drift
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.terms import Holding
from scheduling.engine.usage import is_gpu
from scheduling.models import Agent, AgentNode, Alert, Node, Placement, UsageInterval
from scheduling.selectors.promises import identity, promise_findings

NAMED, SHOWN = 5, 50  # nodes that a sentence names, and cleared alerts that a page shows
OWNER = "scheduling"  # who looks after the alerts that are told from the world as it is now
SILENT, UNDRIVEN = "AGENT_SILENT", "NODES_WITHOUT_AGENT"


def held_outside() -> dict[FlavorResource, int]:
    """Return the GPUs that admitted work outside every queue holds now. 1 query."""
    rows = UsageInterval.objects.filter(ended_at=None, holding=Holding.UNMANAGED).order_by()
    sums = rows.values("flavor", "resource").annotate(amount=Sum("amount"))
    return {FlavorResource(row["flavor"], row["resource"]): row["amount"] for row in sums}


def current_findings(snapshot: Snapshot) -> list[Diagnostic]:
    """Return everything that an alert tells, as it is now. 4 queries beside the snapshot."""
    found = list(promise_findings(snapshot))
    drained = set(Node.objects.filter(ready=True, draining=True).values_list("name", flat=True))
    for column in drift(snapshot, held_outside()):
        away = tuple(name for name in column.away if name not in drained)
        found += _of_drift(replace(column, away=away))
    found += _overcommitted(snapshot)
    return [*found, *_silent_agents(), *_undriven(snapshot)]


def _silent_agents() -> Iterator[Diagnostic]:
    """Yield the agents of which nothing was heard for too long."""
    rows = Agent.objects.exclude(silent_since=None).annotate(owned=Count("nodes"))
    for row in rows:
        since = row.heard_at.isoformat(timespec="seconds")
        numbers: dict[str, str | int] = {"agent": row.name, "since": since, "nodes": row.owned}
        yield Diagnostic(SILENT, f"Agent/{row.name}", "", numbers)


def _undriven(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Yield the flavors with nodes that no agent drives, where agents drive the cluster.

    Before the first agent has come, or where the cluster is simulated, this says nothing new.
    """
    if settings.CLUSTER_BACKEND != "external":
        return
    owned = frozenset(AgentNode.objects.values_list("name", flat=True))
    if not owned:
        return
    atlas = Atlas(snapshot)
    for flavor in sorted(snapshot.flavors):
        usable = (node.name for node in atlas.nodes_of(flavor) if node.usable)
        if names := sorted(set(usable) - owned):
            numbers: dict[str, str | int] = {"nodes": len(names)}
            numbers["names"] = ", ".join(names[:NAMED])
            yield Diagnostic(UNDRIVEN, f"ResourceFlavor/{flavor}", "", numbers)


def _of_drift(column: Drift) -> Iterator[Diagnostic]:
    numbers: dict[str, str | int] = {
        "resource": column.resource,
        "promised": column.promised,
        "declared": column.declared,
        "healthy": column.healthy,
        "placeable": column.placeable,
        "away": column.declared - column.healthy,
        "cordoned": column.cordoned,
        "unmanaged": column.unmanaged,
    }
    subject = f"ResourceFlavor/{column.flavor}"
    if column.missing:
        yield Diagnostic("DRIFT", subject, "", {**numbers, "missing": column.missing})
    if column.unmanaged:
        yield Diagnostic("UNMANAGED_USE", subject, "", numbers)
    if column.away:
        numbers |= {"nodes": len(column.away), "names": ", ".join(column.away[:NAMED])}
        yield Diagnostic("NODES_NOT_READY", subject, "", numbers)


def _overcommitted(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Yield the nodes on which more GPUs are placed than they have any more."""
    placed: Counter[tuple[str, str]] = Counter()
    rows = Placement.objects.filter(admission__released_at=None).exclude(node="").order_by()
    for node, count, requests in rows.values_list("node", "count", "requests").iterator():
        for resource, amount in requests.items():
            if is_gpu(resource):
                placed[node, resource] += count * amount
    offers = {node.name: node for node in snapshot.nodes}
    for (name, resource), amount in sorted(placed.items()):
        has = offers[name].allocatable.get(resource, 0) if name in offers else amount
        if amount > has:
            numbers: dict[str, str | int] = {"amount": amount, "have": has}
            numbers["resource"] = resource
            yield Diagnostic("NODE_OVERCOMMITTED", f"Node/{name}", "", numbers)


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One alert in words. ``cleared_at`` None: it stands."""

    finding: Diagnostic
    raised_at: datetime | None
    cleared_at: datetime | None = None

    @property
    def chip(self) -> str:
        """Return the class of its chip."""
        return "is-bad" if self.finding.severity == reasons.ERROR else "is-warn"

    def as_json(self) -> dict[str, Any]:
        """Return the alert for programs."""
        at = {"raised_at": self.raised_at, "cleared_at": self.cleared_at}
        return {**self.finding.as_json(), **at}


def alert_lines(findings: Iterable[Diagnostic], actor: Actor) -> list[AlertLine]:
    """Return what stands now, with since when the platform has known it. 1 query.

    ``findings``: what this room finds now. What others look after is as they wrote it last.
    """
    rows = list(Alert.objects.filter(cleared_at=None).order_by("raised_at", "id"))
    since = {(row.code, row.subject, row.key): row.raised_at for row in rows}
    mine = [
        AlertLine(f, since.get(identity(f))) for f in findings if may_read(f.code, None, actor)
    ]
    own = codes_of(OWNER)
    return [*mine, *_lines_of((row for row in rows if row.code not in own), actor)]


def cleared_lines(actor: Actor) -> list[AlertLine]:
    """Return the alerts that ended last, newest first. 1 query."""
    rows = Alert.objects.filter(cleared_at__isnull=False).order_by("-cleared_at", "-id")[:SHOWN]
    return _lines_of(rows, actor)


def _lines_of(rows: Iterable[Alert], actor: Actor) -> list[AlertLine]:
    """Return the rows that somebody may read, in words."""
    return [
        AlertLine(Diagnostic(row.code, row.subject, "", row.facts), row.raised_at, row.cleared_at)
        for row in rows
        if may_read(row.code, row.team_id, actor)
    ]
