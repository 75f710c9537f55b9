"""Work as documents, many at once, in a fixed number of queries for each 500."""

from collections.abc import Iterator

from django.db.models import QuerySet

from queues.choices import PriorityKind
from queues.models import PriorityClass
from scheduling.descriptions import describe_workload
from scheduling.models import Workload
from scheduling.specs import WorkloadSpec

CHUNK = 500  # rows read at once


def pod_classes() -> frozenset[str]:
    """Return the priority classes that are Kubernetes' own and not Kueue's. One query."""
    rows = list(PriorityClass.objects.values_list("kind", "name"))
    own = {name for kind, name in rows if kind == PriorityKind.WORKLOAD}
    return frozenset(name for kind, name in rows if kind == PriorityKind.POD) - own


def described(rows: QuerySet[Workload]) -> Iterator[WorkloadSpec]:
    """Yield what each row asks for."""
    for row in rows.prefetch_related("pod_sets").iterator(chunk_size=CHUNK):
        yield describe_workload(row)
