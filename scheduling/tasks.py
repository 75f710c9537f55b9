"""What the scheduler does by itself. Every task looks at the rows and does what is due."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.db.models import Max, QuerySet

from gpuplatform.common import clock
from gpuplatform.common.models import Change
from scheduling import cycle, reconciler
from scheduling.models import Cycle

YOUNG_S = 1  # half a beat: every beat finds the last cycle old enough to run again
ROUNDS = 20  # of one message; what is left waits for the next
CHANGES_KEPT = timedelta(days=1)
EVIDENCE_KEPT = 200  # snapshots of cycles that decided something, some hundred kB each


@shared_task(name="scheduling.run_cycle")
def run_cycle() -> None:
    """Ask the cluster, decide, and go on while something moves.

    A burst of wake-ups is answered once: where a young cycle has seen the newest change, a
    message does nothing. A change that it cannot have seen yet meets the next beat. So does time
    itself: every beat runs a cycle, whether anything has changed or not, so that a minimum
    runtime or a claim that ends (``Cycle.look_again_at``) needs no alarm of its own.
    """
    if not _due():
        return
    for _ in range(ROUNDS):
        looked = reconciler.reconcile()
        decided = cycle.run_cycle()
        if not (looked.moved or decided.moved):
            return


@shared_task(name="scheduling.prune")
def prune() -> None:
    """Forget old cycles and changes; the evidence of decisions is large and goes sooner."""
    _older_than(settings.CYCLES_KEPT, Cycle.objects.all()).delete()
    decided = Cycle.objects.filter(snapshot__isnull=False)
    _older_than(EVIDENCE_KEPT, decided).update(snapshot=None, plan=None)
    Change.objects.filter(at__lt=clock.now() - CHANGES_KEPT).delete()


def _older_than(kept: int, cycles: QuerySet[Cycle]) -> QuerySet[Cycle]:
    """Return what is left of ``cycles`` without the newest ``kept``."""
    newest = cycles.order_by("-id").values_list("pk", flat=True)
    edge = newest[kept : kept + 1].first()
    return cycles.filter(pk__lte=edge) if edge else cycles.none()


def _due() -> bool:
    last = Cycle.objects.order_by("-id").only("at", "last_change").first()
    if last is None or clock.now() - last.at >= timedelta(seconds=YOUNG_S):
        return True
    newest = Change.objects.aggregate(newest=Max("id"))["newest"] or 0
    return newest > last.last_change
