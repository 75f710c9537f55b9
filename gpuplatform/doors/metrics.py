"""``/metrics``: the platform as Prometheus reads it, with Kueue's meanings under our prefix.

Read from rows and the engine's own ledger at most once in five seconds by each process, however
often it is asked. It names every team and queue, so it is for a token or for named networks only.
"""

import secrets
import time
from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network
from threading import Lock

from django.conf import settings
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from finops.models import Bill
from gpuplatform.common import clock
from gpuplatform.common.periods import month_at
from queues.access import Actor
from queues.choices import Role
from scheduling.engine.tree import Kind
from scheduling.models import Admission, Alert, Cycle, Workload
from scheduling.selectors.nodes import node_rows
from scheduling.selectors.quotas import Board, load_board

PREFIX = "gpuplatform"
KEPT_S = 5.0
EVERYBODY = Actor(None, frozenset({Role.ADMIN.value}))
QUEUE, COLUMN = ["cluster_queue"], ["cohort", "cluster_queue", "flavor", "resource"]


def gauge(name: str, words: str, labels: Iterable[str]) -> GaugeMetricFamily:
    """Return an empty gauge of ours."""
    return GaugeMetricFamily(f"{PREFIX}_{name}", words, labels=list(labels))


class Platform(Collector):
    """Everything that is told, read anew each time it is collected."""

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        board = load_board(EVERYBODY)
        yield from _quota(board)
        yield from _queues(board)
        yield from _totals()
        yield from _nodes()
        yield from _cycle()
        yield from _rest()


def _quota(board: Board) -> Iterator[Metric]:
    families = {
        "nominal": gauge("cluster_queue_nominal_quota", "What a queue is promised.", COLUMN),
        "used": gauge("cluster_queue_resource_usage", "What its workloads hold.", COLUMN),
        "borrowed": gauge("cluster_queue_borrowed", "What it holds above its promise.", COLUMN),
        "lent": gauge("cluster_queue_lent", "What others hold of its promise.", COLUMN),
        "pending": gauge("cluster_queue_resource_pending", "What waiting work asks for.", COLUMN),
    }
    for row in board.rows:
        if row.kind is Kind.QUEUE:
            labels = [row.parent or "", row.name, row.flavor, row.resource]
            for field, family in families.items():
                family.add_metric(labels, getattr(row, field))
    yield from families.values()


def _queues(board: Board) -> Iterator[Metric]:
    pending = gauge("pending_workloads", "Workloads that wait.", QUEUE)
    active = gauge("admitted_active_workloads", "Workloads that hold quota.", QUEUE)
    status = gauge("cluster_queue_status", "1 where it admits.", [*QUEUE, "status"])
    for name, queue in sorted(board.snapshot.cluster_queues.items()):
        live = board.live.get(name)
        pending.add_metric([name], live.pending if live else 0)
        active.add_metric([name], live.admitted if live else 0)
        stands = queue.inactive or ("active" if queue.stop_policy == "None" else "stopped")
        status.add_metric([name, str(stands)], 1)
    yield from (pending, active, status)


def _totals() -> Iterator[Metric]:
    admitted = CounterMetricFamily(
        f"{PREFIX}_admitted_workloads", "Admissions ever made.", labels=QUEUE
    )
    evicted = CounterMetricFamily(
        f"{PREFIX}_evicted_workloads", "Evictions ever made.", labels=[*QUEUE, "reason"]
    )
    stays = Admission.objects.filter(is_part=False).order_by()
    for name, count in stays.values_list("cluster_queue").annotate(Count("pk")):
        admitted.add_metric([name], count)
    gone = stays.filter(evicted_at__isnull=False)
    for name, why, count in gone.values_list("cluster_queue", "eviction_reason").annotate(
        Count("pk")
    ):
        evicted.add_metric([name, why], count)
    states = gauge("workloads", "Workloads by state.", ["status"])
    for state, count in Workload.objects.order_by().values_list("status").annotate(Count("pk")):
        states.add_metric([state], count)
    yield from (admitted, evicted, states)


def _nodes() -> Iterator[Metric]:
    nodes = gauge("nodes", "Machines.", ["flavor", "state"])
    gpus = gauge("node_gpus", "GPUs by what becomes of them.", ["flavor", "use"])
    sums: dict[tuple[str, str], int] = {}
    counts: dict[tuple[str, str], int] = {}
    for row in node_rows(EVERYBODY):
        counts[row.flavor, row.state] = counts.get((row.flavor, row.state), 0) + 1
        for use in ("used", "free", "kept", "out"):
            sums[row.flavor, use] = sums.get((row.flavor, use), 0) + getattr(row, use)
    for labels, count in sorted(counts.items()):
        nodes.add_metric(labels, count)
    for labels, amount in sorted(sums.items()):
        gpus.add_metric(labels, amount)
    yield from (nodes, gpus)


def _cycle() -> Iterator[Metric]:
    last = Cycle.objects.only("at", "duration_ms", "admitted", "evicted", "stale").first()
    age = gauge("cycle_age_seconds", "Since the last decision that was written.", [])
    duration = gauge("cycle_duration_seconds", "What that decision took.", [])
    if last is not None:
        age.add_metric([], (clock.now() - last.at).total_seconds())
        duration.add_metric([], last.duration_ms / 1000)
    yield from (age, duration)


def _rest() -> Iterator[Metric]:
    alerts = gauge("alerts", "Where promises and machines do not agree, by code.", ["code"])
    standing = Alert.objects.filter(cleared_at=None).order_by()
    for code, count in standing.values_list("code").annotate(Count("pk")):
        alerts.add_metric([code], count)
    cost = gauge("cost_month", "This month so far, as its draft bills say.", ["team", "currency"])
    month = month_at(clock.now(), settings.BILLING_TIME_ZONE).name
    bills = Bill.objects.filter(period__name=month)
    for team, currency, total in bills.values_list("team__name", "period__currency", "total"):
        cost.add_metric([team or "", currency], float(total))
    yield from (alerts, cost)


# ---- the address -------------------------------------------------------------------------------
class _Kept:
    """The last answer of this process."""

    def __init__(self) -> None:
        self._lock, self._at, self._text = Lock(), 0.0, b""

    def text(self) -> bytes:
        """Return the answer, at most five seconds old; one request at a time reads anew."""
        with self._lock:
            now = time.monotonic()
            if not self._text or now - self._at > KEPT_S:
                registry = CollectorRegistry()
                registry.register(Platform())
                self._text, self._at = generate_latest(registry), now
            return self._text

    def forget(self) -> None:
        """Read anew at the next question."""
        self._text = b""


kept = _Kept()


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer who may ask; to others there is nothing here."""
    if not (_has_token(request) or _is_near(request)):
        raise Http404
    return HttpResponse(kept.text(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _has_token(request: HttpRequest) -> bool:
    wanted = f"Bearer {settings.METRICS_TOKEN}"
    given = request.headers.get("Authorization", "")
    return bool(settings.METRICS_TOKEN) and secrets.compare_digest(given.encode(), wanted.encode())


def _is_near(request: HttpRequest) -> bool:
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in ip_network(network) for network in settings.METRICS_ALLOW)
