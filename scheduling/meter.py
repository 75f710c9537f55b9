"""Exact metering: brings interval rows up to what is held, promised and there.

An interval is closed at the instant at which its ground really ended, and not touched again unless
the cluster reports later that its pods had gone even sooner. The caller runs this in the
transaction of the change itself.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gpuplatform.common.models import Change
from scheduling import lifecycle
from scheduling.engine import metering
from scheduling.engine.atlas import Atlas
from scheduling.engine.snapshot import Quota
from scheduling.engine.terms import Holding
from scheduling.engine.usage import is_gpu
from scheduling.loader import Loaded
from scheduling.models import (
    Admission,
    CapacityInterval,
    QuotaInterval,
    UsageInterval,
    Workload,
)

Ground = tuple[int, str, str, str, str]  # admission, flavor, resource, holding, lender


def follow(world: Loaded, *, at: datetime) -> None:
    """Bring usage rows to how ``world`` splits what is held into own quota and loans.

    ``at`` is the instant since which this split holds. Work that ``world`` no longer holds was
    released then. Where the rows of an admission already say something about a later time (the
    cause was noticed late), its new split begins there: every GPU is metered exactly once.
    """
    wanted = _grounds(world)
    standing = list(UsageInterval.objects.filter(ended_at=None).select_related("workload"))
    loans_before = _loans(standing)
    held = {row.pk: max(at, row.admitted_at) for row in world.admissions.values()}
    for row in standing:
        if row.admission_id in held:
            held[row.admission_id] = max(held[row.admission_id], row.started_at)
    for row in standing:
        ground = (row.admission_id, row.flavor, row.resource, row.holding, row.lender)
        if wanted.get(ground) == row.amount:
            del wanted[ground]
        else:
            _close(row, held.get(row.admission_id, at))
    _trim({row.admission_id for row in standing} - held.keys(), at)
    _open(world, wanted, held)
    ends = {row.admission_id: max(at, row.started_at) for row in standing}
    _tell_loans(loans_before, {**ends, **held})


def _grounds(world: Loaded) -> dict[Ground, int]:
    found: dict[Ground, int] = {}
    for share in metering.split(world.snapshot):
        admission = world.admissions[share.workload]
        ground = (admission.pk, share.flavor, share.resource, share.holding, share.lender)
        found[ground] = found.get(ground, 0) + share.amount
    return found


def _close(row: UsageInterval, at: datetime) -> None:
    if at <= row.started_at:
        row.delete()  # it never lasted: no row of no length
    else:
        row.ended_at = at
        row.save(update_fields=["ended_at"])


def _trim(released: Iterable[int], at: datetime) -> None:
    """Take back what was metered after the instant at which these admissions had ended."""
    late = UsageInterval.objects.filter(admission__in=released, ended_at__gt=at)
    late.filter(started_at__gte=at).delete()
    late.update(ended_at=at)


def _open(world: Loaded, missing: Mapping[Ground, int], since: Mapping[int, datetime]) -> None:
    if not missing:
        return
    admissions = {row.pk: row for row in world.admissions.values()}
    keys = {admissions[ground[0]].workload_id for ground in missing}
    workloads = Workload.objects.defer("template").in_bulk(keys)
    opened = []
    for ground, amount in sorted(missing.items()):
        admission = admissions[ground[0]]
        admission.workload = workloads[admission.workload_id]
        opened.append(_usage(world, admission, ground, amount))
        opened[-1].started_at = since[admission.pk]
    UsageInterval.objects.bulk_create(opened)


def _usage(world: Loaded, admission: Admission, ground: Ground, amount: int) -> UsageInterval:
    """Return a new row; the queue's team pays, else the workload's own (``decisions.md`` 6)."""
    _, flavor, resource, holding, lender = ground
    queue = world.doors.cluster_queues.get(admission.cluster_queue)
    return UsageInterval(
        admission=admission,
        workload=admission.workload,
        team_id=(queue.team_id if queue else None) or admission.workload.team_id,
        cluster_queue=admission.cluster_queue,
        namespace=admission.workload.namespace,
        flavor=flavor,
        resource=resource,
        amount=amount,
        holding=holding,
        lender=lender,
    )


Loan = tuple[int, str, str]  # admission, flavor, resource


def _loans(rows: Iterable[UsageInterval]) -> dict[Loan, list[UsageInterval]]:
    """Return the rows that are borrowed, by what was borrowed for which admission."""
    loans: dict[Loan, list[UsageInterval]] = {}
    for row in rows:
        if row.holding == Holding.BORROWED:
            loans.setdefault((row.admission_id, row.flavor, row.resource), []).append(row)
    return loans


def _tell_loans(before: Mapping[Loan, list[UsageInterval]], since: Mapping[int, datetime]) -> None:
    """Write a line in the story of each workload that borrows more or less than before.

    Which lender stands for which GPU may shift whenever anything else in the cohort moves; that
    is for the ledger, not for the story.
    """
    borrowed = UsageInterval.objects.filter(ended_at=None, holding=Holding.BORROWED)
    after = _loans(borrowed.select_related("workload"))
    for loan in sorted({*before, *after}):
        rows = after.get(loan, [])
        was, now = (sum(row.amount for row in part) for part in (before.get(loan, []), rows))
        if was != now:
            kind = "loan_changed" if was and now else "loan_opened" if now else "loan_closed"
            row = (rows or before[loan])[0]
            facts = _loan_facts(row, rows or before[loan], now or was)
            lifecycle.tell(row.workload, kind, at=since[loan[0]], facts=facts)


def _loan_facts(row: UsageInterval, parts: list[UsageInterval], amount: int) -> dict[str, Any]:
    return {
        "queue": row.cluster_queue,
        "flavor": row.flavor,
        "resource": row.resource,
        "amount": amount,
        "lenders": {part.lender: part.amount for part in sorted(parts, key=lambda p: p.lender)},
    }


# ---- what is there and what is promised --------------------------------------------------------
def edited_at(world: Loaded) -> datetime:
    """Return since when things are as they are: the last edit that no cycle has seen.

    Of promises, and of the size of running work. Where none is known, it is now.
    """
    edits = [queue.updated_at for queue in world.doors.cluster_queues.values()]
    edits += [q.cohort.updated_at for q in world.doors.cluster_queues.values() if q.cohort]
    edits += [world.resized_at] if world.resized_at else []
    return _since(max(edits, default=world.now), world)


def _since(changed: datetime, world: Loaded) -> datetime:
    """Return when a change happened, if no cycle can have seen it already; else now."""
    unseen = world.previous_at is None or world.previous_at < changed
    return changed if unseen and changed <= world.now else world.now


def _removed_at(noun: str, name: str, world: Loaded) -> datetime:
    """Return when a row that is gone was deleted: its last change, as far as that is kept."""
    last = Change.objects.filter(topic=noun, key=name).order_by("-at").first()
    return _since(last.at, world) if last else world.now


def note_supply(world: Loaded) -> None:
    """Bring the rows of capacity and quota to what nodes offer and queues are promised now."""
    _note_capacity(world)
    _note_quota(world)


def _note_capacity(world: Loaded) -> None:
    def since(node: str) -> datetime:
        row = world.nodes.get(node)
        return _since(row.updated_at, world) if row else _removed_at("node", node, world)

    offers = _offers(world)
    starts = {column: since(column[0]) for column in offers}
    for row in CapacityInterval.objects.filter(ended_at=None):
        column = (row.node, row.resource)
        if offers.get(column) == (row.flavor, row.amount, row.healthy):
            del offers[column]
        else:
            starts[column] = _end(row, since(row.node))
    CapacityInterval.objects.bulk_create(
        CapacityInterval(
            node=column[0],
            flavor=flavor,
            resource=column[1],
            amount=amount,
            healthy=healthy,
            started_at=starts[column],
        )
        for column, (flavor, amount, healthy) in sorted(offers.items())
    )


def _offers(world: Loaded) -> dict[tuple[str, str], tuple[str, int, bool]]:
    """Return flavor, amount and health of the GPUs of each node, by node and resource."""
    atlas = Atlas(world.snapshot)
    return {
        (node.name, resource): (metering.flavor_of(atlas, node.name), amount, node.usable)
        for node in world.snapshot.nodes
        for resource, amount in node.allocatable.items()
        if is_gpu(resource) and amount
    }


def _note_quota(world: Loaded) -> None:
    def since(queue: str) -> datetime:
        row = world.doors.cluster_queues.get(queue)
        return _since(row.updated_at, world) if row else _removed_at("cluster_queue", queue, world)

    promises = _promises(world)
    starts = {column: since(column[0]) for column in promises}
    for row in QuotaInterval.objects.filter(ended_at=None):
        column = (row.cluster_queue, row.flavor, row.resource)
        promise = (row.cohort, Quota(row.nominal, row.borrowing_limit, row.lending_limit))
        if promises.get(column) == promise:
            del promises[column]
        else:
            starts[column] = _end(row, since(row.cluster_queue))
    QuotaInterval.objects.bulk_create(
        QuotaInterval(
            cluster_queue=column[0],
            cohort=cohort,
            flavor=column[1],
            resource=column[2],
            nominal=quota.nominal,
            borrowing_limit=quota.borrowing_limit,
            lending_limit=quota.lending_limit,
            started_at=starts[column],
        )
        for column, (cohort, quota) in sorted(promises.items())
    )


def _promises(world: Loaded) -> dict[tuple[str, str, str], tuple[str, Quota]]:
    """Return cohort and quota of each column of each queue."""
    return {
        (queue.name, fr.flavor, fr.resource): (queue.cohort or "", quota)
        for queue in world.snapshot.cluster_queues.values()
        for fr, quota in queue.quotas.items()
    }


def _end(row: CapacityInterval | QuotaInterval, changed: datetime) -> datetime:
    """Close a row at the change that ended it; return since when its successor holds."""
    if changed <= row.started_at:
        row.delete()
        return row.started_at
    row.ended_at = changed
    row.save(update_fields=["ended_at"])
    return changed
