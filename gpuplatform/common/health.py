"""Is it alive, is it ready: the two questions of a supervisor."""

import logging
from datetime import datetime

from django.apps import apps
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from gpuplatform.common import clock, leases

LATE_S = 30  # fifteen beats without a cycle, or three lease periods without a sign of life
logger = logging.getLogger(__name__)


@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    """Answer as long as this process can answer at all."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database answers; tell how long ago somebody last decided."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        cycles = apps.get_model("scheduling", "Cycle").objects.order_by("-id")
        age = decided_ago(cycles.values_list("at", flat=True).first())
    except DatabaseError as error:
        logger.warning("health.database_away", extra={"error": str(error)})
        return JsonResponse({"status": "unavailable", "database": "away"}, status=503)
    answer = {"status": "ok", "database": "ok", "cycle": _verdict(age), "last_cycle_age_s": age}
    return JsonResponse(answer)


def decided_ago(last_cycle: datetime | None) -> float | None:
    """Return the seconds since somebody last decided, or looked and found nothing to decide.

    ``last_cycle``: when the last cycle was written; None: there was none. 1 query.
    """
    return silence(last_cycle, leases.last_beat(leases.CYCLE))


def silence(last_cycle: datetime | None, last_beat: datetime | None) -> float | None:
    """Return the seconds since the later of a cycle and a look at what there is to decide."""
    latest = max((at for at in (last_cycle, last_beat) if at), default=None)
    return None if latest is None else max(0.0, round((clock.now() - latest).total_seconds(), 1))


def _verdict(age: float | None) -> str:
    if age is None:
        return "none"
    return "late" if age > LATE_S else "ok"
