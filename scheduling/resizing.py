"""Rows of work that comes to hold more or less while it runs on."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db.models import F, Q

from scheduling import lifecycle
from scheduling.engine.plan import Admit
from scheduling.engine.snapshot import Assignment
from scheduling.engine.snapshot import Workload as Known
from scheduling.engine.terms import PendingReason, Status
from scheduling.faces import NO_GROWTH, Face
from scheduling.models import Admission, PodSet, Workload

HOLDING = (Status.ADMITTED.value, Status.RUNNING.value)
# Who waits for admission checks holds as well, and may be given more or lose some.
HOLDS = Q(status__in=HOLDING) | Q(
    status=Status.PENDING.value, pending_reason=PendingReason.UNSATISFIED_CHECKS.value
)


def resize(workload: Face, known: Known, assignments: Iterable[Assignment]) -> bool:
    """Write what a running workload holds; False where it has changed since it was seen."""
    seen = Workload.objects.filter(pk=workload.uid, version=workload.version)
    gpus = granted_gpus(known, assignments)
    if not seen.filter(HOLDS).update(version=F("version") + 1, gpus=gpus, growth={}):
        return False
    workload.version, workload.gpus, workload.growth = workload.version + 1, gpus, NO_GROWTH
    return True


def grow(workload: Face, known: Known, decision: Admit) -> bool:
    """Write the size that a running workload had asked for; False where it has changed since."""
    if not resize(workload, known, decision.assignments):
        return False
    more = PodSet.objects.filter(workload=workload.uid).exclude(wanted=None)
    more.update(count=F("wanted"), wanted=None)
    return True


def note_lost(admission: int, known: Known, pods: Iterable[Assignment], at: datetime) -> None:
    """Note what is thrown away with pods that are taken from a gang, where it goes on."""
    assert known.admission is not None
    saved = max(known.admission.admitted_at, known.last_checkpoint_at or 0.0)
    since, gpus = datetime.fromtimestamp(saved, UTC), granted_gpus(known, pods)
    if since < at and gpus:
        row = Admission.objects.get(pk=admission)
        row.lost.append({"from": since.isoformat(), "to": at.isoformat(), "gpus": gpus})
        row.save(update_fields=["lost"])


def granted_gpus(known: Known, assignments: Iterable[Assignment]) -> int:
    """Return the GPUs of what is granted."""
    requests = {pod_set.name: pod_set.requests for pod_set in known.pod_sets}
    return lifecycle.gpus_of((a.count, requests[a.pod_set]) for a in assignments)
