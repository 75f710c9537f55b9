"""What the scheduler does by itself. Every task looks at the rows and does what is due."""

import time
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.db.models import QuerySet

from gpuplatform.common import clock
from gpuplatform.common.models import Change
from gpuplatform.common.once import forget_old_answers
from scheduling import letters, retention
from scheduling import watch as alerts
from scheduling.models import Cycle
from scheduling.worker import Worker

COALESCED_S = 0.02  # what is asked for within this time is answered by one cycle
WORKER = Worker()  # of this process
CHANGES_KEPT = timedelta(days=1)
EVIDENCE_KEPT = 200  # snapshots of cycles that decided something, some hundred kB each


@shared_task(name="scheduling.run_cycle")
def run_cycle() -> None:
    """Decide and ask the cluster, and go on while something moves.

    The process keeps its world from one message to the next. A burst of wake-ups is answered
    once: what the others call for is seen already, and they find nothing to do. Every beat looks
    as well, whether anything has changed or not, so that a minimum runtime or a claim that ends
    needs no alarm of its own.
    """
    time.sleep(COALESCED_S)
    WORKER.turn()


@shared_task(name="scheduling.watch")
def watch() -> None:
    """Raise and clear alerts."""
    alerts.watch()


@shared_task(name="scheduling.send_mail")
def send_mail() -> None:
    """Tell people of new alerts, and try again what could not be sent."""
    letters.address()
    letters.send()


@shared_task(name="scheduling.prune")
def prune() -> None:
    """Forget old cycles, changes and finished work; the evidence of decisions goes sooner."""
    retention.forget_finished(clock.now())
    retention.forget_stories(clock.now())
    _older_than(settings.CYCLES_KEPT, Cycle.objects.all()).delete()
    decided = Cycle.objects.filter(snapshot__isnull=False)
    _older_than(EVIDENCE_KEPT, decided).update(snapshot=None, plan=None)
    forget_old_answers()
    Change.objects.filter(at__lt=clock.now() - CHANGES_KEPT).delete()


def _older_than(kept: int, cycles: QuerySet[Cycle]) -> QuerySet[Cycle]:
    """Return what is left of ``cycles`` without the newest ``kept``."""
    newest = cycles.order_by("-id").values_list("pk", flat=True)
    edge = newest[kept : kept + 1].first()
    return cycles.filter(pk__lte=edge) if edge else cycles.none()
