"""Is it alive, is it ready: the two questions of a supervisor."""

import logging

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from gpuplatform.common.models import Lease

logger = logging.getLogger(__name__)


@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    """Answer as long as this process can answer at all."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database answers; tell whether somebody decides at present."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        lease = Lease.objects.order_by("-until").first()
    except DatabaseError as error:
        logger.warning("health.database_away", extra={"error": str(error)})
        return JsonResponse({"status": "unavailable", "database": "away"}, status=503)
    deciding = lease is not None and lease.until > timezone.now()
    return JsonResponse({"status": "ok", "database": "ok", "deciding": deciding})
