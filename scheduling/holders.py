"""Everything that holds quota now, as a look at the cluster reads it: plain facts, no model rows.

Tens of thousands of gangs are compared with the cluster at each look, and of most of them
nothing is new. What has to be judged by more than this is read as rows, one by one.
Source: ``performance.md`` 6.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from gpuplatform.common.questions import Question
from scheduling.engine.terms import Status
from scheduling.jsontexts import read_json
from scheduling.models import Admission, Placement
from scheduling.moves import Move

ADMISSION = (
    *("pk", "workload_id", "cluster_queue", "admitted_at", "started_at", "evicted_at"),
    *("eviction_reason", "is_part", "is_reserved", "attempt", "begun_at", "unready_since"),
)
WORKLOAD = (
    *("uid", "namespace", "name", "queue_name", "status", "version", "admitted_at", "executed_s"),
    *("expected_duration_s", "max_execution_time_s", "grace_s", "last_checkpoint_at"),
    *("requeue_at", "requeues", "retries", "max_retries", "on_failure", "min_success"),
    "min_member",
)
WORKLOAD_TEXTS = ("policies", "annotations")


@dataclass(slots=True)
class Owner:
    """The workload that holds something; the names are those of its row."""

    uid: UUID
    namespace: str
    name: str
    queue_name: str
    status: str
    version: int
    admitted_at: datetime | None
    executed_s: float
    expected_duration_s: int | None
    max_execution_time_s: int | None
    grace_s: int
    last_checkpoint_at: datetime | None
    requeue_at: datetime | None
    requeues: int
    retries: int
    max_retries: int | None
    on_failure: str
    min_success: int | None
    min_member: int | None
    policies_text: str
    annotations_text: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def policies(self) -> list[Any]:
        """Return what becomes of it when a member ends, as rows; equal ones are one object."""
        found: list[Any] = read_json(self.policies_text)
        return found

    @property
    def annotations(self) -> Mapping[str, Any]:
        """Return its annotations; equal ones are one object."""
        found: Mapping[str, Any] = read_json(self.annotations_text)
        return found

    def follow(self, move: Move) -> None:
        """Say what the row says after a move of the workload was written."""
        self.version, self.status = self.version + 1, move.to.value
        self.requeue_at = None if move.to is Status.FINISHED else self.requeue_at


@dataclass(slots=True)
class Holder:
    """An admission that is not released; the names are those of its row."""

    pk: int
    workload_id: UUID
    cluster_queue: str
    admitted_at: datetime
    started_at: datetime | None
    evicted_at: datetime | None
    eviction_reason: str
    is_part: bool
    is_reserved: bool
    attempt: int
    begun_at: datetime | None
    unready_since: datetime | None
    workload: Owner


class Stand(NamedTuple):
    """Pods of one pod set of an admission on one node."""

    admission_id: int
    pod_set: str
    node: str
    pods: int


def read_holders(keys: Collection[int] | None = None) -> list[Holder]:
    """Return what is held, the oldest first; all of it, or these admissions. 1 query."""
    width = len(ADMISSION)
    found = ALL.ask() if keys is None else SOME.ask(keys) if keys else ()
    parts: Iterator[list[Any]] = ([*row[:width], Owner(*row[width:])] for row in found)
    return [Holder(*cells) for cells in parts]


def _facts(admissions: QuerySet[Admission]) -> QuerySet[Admission, Any]:
    texts = {f"{name}_text": Cast(f"workload__{name}", TextField()) for name in WORKLOAD_TEXTS}
    columns = (*ADMISSION, *(f"workload__{name}" for name in WORKLOAD))
    rows = admissions.filter(released_at=None).annotate(**texts).order_by("admitted_at", "id")
    return rows.values_list(*columns, *texts)


ALL = Question(lambda _: _facts(Admission.objects.all()))
SOME = Question(lambda keys: _facts(Admission.objects.filter(pk__among=keys)))
STANDS = Question(
    lambda _: (
        Placement.objects.filter(admission__released_at=None)
        .order_by()
        .values_list("admission_id", "pod_set", "node", "count")
    )
)


def read_stands() -> list[Stand]:
    """Return where the pods of all that is held stand. 1 query."""
    return list(map(Stand._make, STANDS.ask()))
