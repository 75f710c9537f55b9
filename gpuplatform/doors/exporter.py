"""Everything out as documents that :mod:`gpuplatform.doors.importer` takes in again unchanged.

In the order in which they need each other. What has ended is history and no promise: it stays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from finops.models import Price
from finops.price_lists import price_list
from gpuplatform.common.manifests import MAX_BYTES, MAX_DOCUMENTS
from gpuplatform.common.yamls import dumped
from gpuplatform.doors.hypernodes.writing import hypernodes
from queues import descriptions
from queues.manifests.export import manifest_of
from queues.models import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    Namespace,
    PriorityClass,
    ResourceFlavor,
    Team,
    Topology,
)
from scheduling.checking import describe_check
from scheduling.engine.terms import Status
from scheduling.manifests.export import manifest_of as work_manifest
from scheduling.models import AdmissionCheck, Node, Workload
from scheduling.selectors.exports import described, pod_classes
from scheduling.services import describe_node

Manifests = Iterator[Mapping[str, Any]]


def export_everything(kinds: Iterable[str] = ()) -> Manifests:
    """Yield the documents of these kinds; of all of ``KINDS`` where none is named."""
    wanted = set(kinds) or set(KINDS)
    for kind, documents in {**KINDS, **OTHER_KINDS}.items():
        if kind in wanted:
            yield from documents()


def _promised(rows: Any, describe: Callable[[Any], object]) -> Callable[[], Manifests]:
    return lambda: (manifest_of(describe(row)) for row in rows.all())


def _on_hand(rows: Any, describe: Callable[[Any], object]) -> Callable[[], Manifests]:
    return lambda: (work_manifest(describe(row)) for row in rows.all())


def _prices() -> Manifests:
    if rows := list(Price.objects.order_by("unit", "subject", "valid_from")):
        yield price_list(rows)


def _live() -> Manifests:
    rows = Workload.objects.exclude(status=Status.FINISHED.value).order_by("created_at", "uid")
    classes = pod_classes()
    yield from (work_manifest(spec, classes) for spec in described(rows))


KINDS: Mapping[str, Callable[[], Manifests]] = {
    "Team": _promised(Team.objects, descriptions.describe_team),
    "Namespace": _promised(
        Namespace.objects.select_related("team"), descriptions.describe_namespace
    ),
    "PriorityClass": _promised(PriorityClass.objects, descriptions.describe_priority_class),
    "Topology": _promised(
        Topology.objects.prefetch_related("levels"), descriptions.describe_topology
    ),
    "ResourceFlavor": _promised(ResourceFlavor.objects, descriptions.describe_flavor),
    "Node": _on_hand(Node.objects, describe_node),
    "Cohort": _promised(
        Cohort.objects.filter(implicit=False).select_related("parent").prefetch_related("quotas"),
        descriptions.describe_cohort,
    ),
    "ClusterQueue": _promised(
        ClusterQueue.objects.select_related("team", "cohort").prefetch_related("quotas"),
        descriptions.describe_cluster_queue,
    ),
    "LocalQueue": _promised(LocalQueue.objects, descriptions.describe_local_queue),
    "AdmissionCheck": _on_hand(AdmissionCheck.objects, describe_check),
    "PriceList": _prices,
    "Workload": _live,
}


# Said by topologies and nodes already: only where it is asked for.
OTHER_KINDS: Mapping[str, Callable[[], Manifests]] = {"HyperNode": hypernodes}


def in_files(documents: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield texts, each of which one import takes in: so many documents and bytes at most."""
    text, count, size = "", 0, 0
    for part in dumped(documents):
        more = len(part.encode())
        if count == MAX_DOCUMENTS or (count and size + more > MAX_BYTES):
            yield text
            text, count, size = "", 0, 0
        text, count, size = text + part, count + 1, size + more
    if text:
        yield text
