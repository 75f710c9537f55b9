"""What the cluster reports becomes rows: gangs start, end, and give back what they held."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from django.conf import settings

from gpuplatform.common import clock, leases
from gpuplatform.common.wakeup import request_cycle
from scheduling import lifecycle, meter
from scheduling.backends import backend_at
from scheduling.backends.base import Gang, PlacedPods, Sighting
from scheduling.engine.parts import leaving_key
from scheduling.engine.terms import Outcome, Status
from scheduling.loader import Loaded, load
from scheduling.models import Admission, Node, Placement

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What became of one look at the cluster. ``ran`` false: another process was writing.

    ``broken`` counts gangs of which pods have gone with their node.
    """

    ran: bool = True
    started: int = 0
    released: int = 0
    broken: int = 0

    @property
    def moved(self) -> bool:
        """Return whether anything changed."""
        return bool(self.started or self.released or self.broken)


def reconcile(now: datetime | None = None, holder: str | None = None) -> ReconcileReport:
    """Bring rows up to what the cluster has done by ``now``; a second call finds nothing to do.

    The cluster is asked before the transaction begins. Everything is written at the instant at
    which it happened, however late it was noticed.
    """
    now = now or clock.now()
    gangs = desired_gangs()
    backend = backend_at(now)
    backend.converge(gangs)
    news = _news(backend.observe(), gangs)
    lost = _on_lost_nodes(gangs)
    if not news and not lost:
        return ReconcileReport()
    holder = holder or leases.unique_holder()
    with leases.transaction_under(leases.CYCLE, holder, settings.CYCLE_LEASE_S) as held:
        return _note(news, lost, now) if held else ReconcileReport(ran=False)


def desired_gangs() -> tuple[Gang, ...]:
    """Return what should stand in the cluster, in two queries."""
    placed: defaultdict[int, list[PlacedPods]] = defaultdict(list)
    for row in Placement.objects.filter(admission__released_at=None):
        placed[row.admission_id].append(PlacedPods(row.pod_set, row.node, row.count))
    return tuple(
        Gang(
            admission=row.pk,
            workload=str(row.workload_id),
            admitted_at=row.admitted_at,
            pods=tuple(placed[row.pk]),
            started_at=row.started_at,
            evicted_at=row.evicted_at,
            expected_duration_s=row.workload.expected_duration_s,
        )
        for row in _open_admissions()
    )


def _open_admissions() -> Iterable[Admission]:
    found = Admission.objects.filter(released_at=None).select_related("workload")
    return found.defer("workload__template").order_by("admitted_at", "id")


def _news(sightings: Iterable[Sighting], gangs: Iterable[Gang]) -> list[Sighting]:
    """Return what the rows do not know yet, in the order in which it happened."""
    started = {gang.admission: gang.started_at for gang in gangs}
    news = [s for s in sightings if s.released_at or (s.started_at and not started[s.admission])]
    return sorted(news, key=lambda s: (s.released_at or s.started_at, s.admission))


def _on_lost_nodes(gangs: Iterable[Gang]) -> dict[int, list[str]]:
    """Return the nodes that gangs should stand on and that have left the cluster, by admission."""
    known = {"", *Node.objects.values_list("name", flat=True)}
    standing = (gang for gang in gangs if gang.evicted_at is None)
    lost = {gang.admission: sorted({pods.node for pods in gang.pods} - known) for gang in standing}
    return {admission: names for admission, names in lost.items() if names}


def _note(
    news: Iterable[Sighting], lost: Mapping[int, list[str]], now: datetime
) -> ReconcileReport:
    """Write the news of gangs that started, ended, or lost a node."""
    standing = {row.pk: row for row in _open_admissions()}
    news = [sighting for sighting in news if sighting.admission in standing]
    started = sum(_start(standing[s.admission], s) for s in news)
    ends = [(s.released_at, standing[s.admission], s.outcome) for s in news if s.released_at]
    released = _release(ends, now) if ends else 0
    lost = {pk: names for pk, names in lost.items() if pk in standing}
    broken = sum(_tell_lost(standing[pk], lost[pk], now) for pk in sorted(lost))
    touched = {standing[pk].workload_id for pk in (*(s.admission for s in news), *lost)}
    if released or broken:
        request_cycle(lifecycle.CHANGED, *sorted(touched))
    return ReconcileReport(started=started, released=released, broken=broken)


def _release(ends: Iterable[tuple[datetime, Admission, Outcome | None]], now: datetime) -> int:
    """End admissions, one instant after the other, so that each is metered at its own."""
    world, released = load(now, waiting=False), 0
    for instant, together in groupby(ends, key=lambda end: end[0]):
        gone = [row for _, row, outcome in together if _end(row, instant, outcome)]
        world = _without(world, gone)
        meter.follow(world, at=instant)
        released += len(gone)
    return released


def _start(admission: Admission, sighting: Sighting) -> bool:
    workload = admission.workload
    if sighting.started_at is None or workload.status != Status.ADMITTED or admission.evicted_at:
        return False
    if not lifecycle.transition(workload, Status.RUNNING, at=sighting.started_at):
        return False
    admission.started_at = sighting.started_at
    admission.save(update_fields=["started_at"])
    return True


def _end(admission: Admission, instant: datetime, outcome: Outcome | None) -> bool:
    """Give back quota and nodes, and write what this means for the workload.

    Returns:
        Whether it was done; False when the workload has changed meanwhile: the next look decides.
    """
    workload, why = admission.workload, admission.eviction_reason
    alive = {Status.ADMITTED, Status.RUNNING, Status.PENDING}
    if outcome and not admission.is_part and workload.status in alive:
        if not lifecycle.transition(workload, Status.FINISHED, at=instant, outcome=outcome):
            return False
        logger.info("finished %s", workload)
    else:
        kind = "requeued" if workload.status == Status.PENDING else "released"
        kind = "surplus_left" if admission.is_part else kind
        lifecycle.tell(workload, kind, at=instant, reason=why)
    admission.released_at = max(instant, admission.admitted_at)
    admission.save(update_fields=["released_at"])
    return True


def _tell_lost(admission: Admission, nodes: list[str], now: datetime) -> bool:
    """Write once that pods have gone with their nodes; what then becomes of it a cycle decides.

    Pods that came back since, or others in their place, may be lost in their turn.
    """
    events = admission.workload.events.filter(at__gte=admission.admitted_at)
    whole = events.filter(kind__in=("mended", "grown")).order_by("id").last()
    told = events.filter(kind="members_lost", id__gt=whole.pk if whole else 0)
    known = {name for event in told for name in event.facts.get("lost", ())}
    news = sorted(set(nodes) - known)
    if not news:
        return False
    facts = {"lost": news}
    lifecycle.tell(admission.workload, "members_lost", at=now, facts=facts)
    logger.info("%s lost pods on %s", admission.workload, ", ".join(nodes))
    return True


def _key(admission: Admission) -> str:
    key = str(admission.workload_id)
    return leaving_key(key) if admission.is_part else key


def _without(world: Loaded, released: Iterable[Admission]) -> Loaded:
    """Return the world after these admissions have been released."""
    gone = {_key(admission) for admission in released}
    snapshot = world.snapshot
    staying = tuple(w for w in snapshot.workloads if w.key not in gone)
    return replace(
        world,
        snapshot=replace(snapshot, workloads=staying),
        admissions={key: a for key, a in world.admissions.items() if key not in gone},
    )
