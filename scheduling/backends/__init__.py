"""Clusters behind one protocol."""

from datetime import datetime

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from scheduling.backends.base import ClusterBackend
from scheduling.backends.external import ExternalBackend
from scheduling.backends.simulated import SimulatedBackend


def backend_at(now: datetime) -> ClusterBackend:
    """Return the configured cluster as it stands at ``now``.

    Raises:
        ImproperlyConfigured: ``CLUSTER_BACKEND`` names no cluster that we know.
    """
    if settings.CLUSTER_BACKEND == "simulated":
        return SimulatedBackend(now)
    if settings.CLUSTER_BACKEND == "external":
        return ExternalBackend(now)
    raise ImproperlyConfigured(f"unknown CLUSTER_BACKEND {settings.CLUSTER_BACKEND!r}")
