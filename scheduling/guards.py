"""Why a promise must stay: what is running or waiting needs it."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from gpuplatform.common.problems import Problem
from scheduling.models import Admission, Workload
from scheduling.works import LIVE

NAMED = 5  # workloads that a refusal names


def guard_promises(kind: str, key: str) -> Iterator[Problem]:
    """Yield why a ClusterQueue that holds work, or a LocalQueue that work names, must stay."""
    if kind == "ClusterQueue":
        held = Admission.objects.filter(released_at=None, cluster_queue=key)
        yield from _needed([str(row.workload) for row in held.select_related("workload")[:NAMED]])
    elif kind == "LocalQueue":
        namespace, _slash, name = key.partition("/")
        live = Workload.objects.filter(status__in=LIVE, namespace=namespace, queue_name=name)
        yield from _needed([str(row) for row in live.only("namespace", "name")[:NAMED]])


def _needed(names: list[str]) -> Iterator[Problem]:
    if names:
        words = _("work still needs it: {names}").format(names=", ".join(names))
        yield Problem("name", "in_use", words)
