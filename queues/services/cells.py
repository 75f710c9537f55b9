"""Other amounts in the quota tables of several queues, all of them or none."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from django.db import transaction

from gpuplatform.common import reasons
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues.descriptions import describe_cluster_queue
from queues.models import ClusterQueue, User
from queues.services.queues import save_cluster_queue
from queues.services.writing import refuse
from queues.specs import CellSpec, ClusterQueueSpec, QuotaSpec, ResourceGroupSpec

_CELL = re.compile(r"groups\[(\d+)\]\.flavors\[(\d+)\]\.quotas\[(\d+)\]\.(\w+)")
Numbered = list[tuple[int, CellSpec]]


@transaction.atomic
def save_cells(
    cells: Sequence[CellSpec],
    *,
    actor: User | None,
    reason: str = "",
    versions: Mapping[str, int] | None = None,
) -> list[ClusterQueue]:
    """Let these cells be so, and return the queues that they belong to; each is audited.

    ``versions``: of queues, as they were seen. Every rule of a single queue's edit holds.
    Problems say which cell they are about: ``cells[3].nominal``.

    Raises:
        Rejected: a cell that is not there or stands twice, or an amount that breaks a rule.
        Stale: queues have changed since they were seen.
    """
    by_queue: dict[str, Numbered] = {}
    for number, cell in enumerate(cells):
        by_queue.setdefault(cell.queue, []).append((number, cell))
    known = ClusterQueue.objects.select_related("team", "cohort").prefetch_related("quotas")
    rows = {row.name: row for row in known.filter(name__in=by_queue)}
    specs = {name: describe_cluster_queue(row) for name, row in rows.items()}
    refuse(_misplaced(by_queue, specs))
    saved, broken, stale = [], list[Problem](), list[Problem]()
    for name, own in by_queue.items():
        try:
            wanted = _with(specs[name], [cell for _number, cell in own])
            version = (versions or {}).get(name)
            row = save_cluster_queue(wanted, actor=actor, reason=reason, if_version=version)
            saved.append(row)
        except Stale as error:
            stale += (_of_queue(problem, own) for problem in error.problems)
        except Rejected as error:
            broken += (_of_cell(problem, specs[name], own) for problem in error.problems)
    if stale:
        raise Stale(stale)
    refuse(broken)
    return saved


def cells_of(spec: ClusterQueueSpec) -> list[CellSpec]:
    """Return a queue's quota table cell by cell, in its order."""
    return [
        CellSpec(
            spec.name,
            flavor.flavor,
            quota.resource,
            quota.nominal,
            quota.borrowing_limit,
            quota.lending_limit,
        )
        for group in spec.groups
        for flavor in group.flavors
        for quota in flavor.quotas
    ]


def _misplaced(
    by_queue: Mapping[str, Numbered], specs: Mapping[str, ClusterQueueSpec]
) -> Iterable[Problem]:
    for name, own in by_queue.items():
        there = {cell.place for cell in cells_of(specs[name])} if name in specs else set()
        seen: set[tuple[str, str, str]] = set()
        for number, cell in own:
            numbers = {"queue": name, "flavor": cell.flavor, "resource": cell.resource}
            if name not in specs:
                yield _problem(f"cells[{number}].queue", "QUOTA_NO_QUEUE", numbers)
            elif cell.place not in there:
                yield _problem(f"cells[{number}].flavor", "QUOTA_NO_CELL", numbers)
            elif cell.place in seen:
                yield _problem(f"cells[{number}]", "QUOTA_TWICE", numbers)
            seen.add(cell.place)


def _problem(path: str, code: str, numbers: Mapping[str, str | int]) -> Problem:
    return Problem(path, code, reasons.sentence(code, numbers), numbers)


def _with(spec: ClusterQueueSpec, cells: Iterable[CellSpec]) -> ClusterQueueSpec:
    """Return a queue with other amounts in some cells."""
    wanted = {(cell.flavor, cell.resource): cell for cell in cells}

    def changed(group: ResourceGroupSpec) -> ResourceGroupSpec:
        flavors = tuple(
            replace(
                flavor,
                quotas=tuple(
                    _quota(quota, wanted.get((flavor.flavor, quota.resource)))
                    for quota in flavor.quotas
                ),
            )
            for flavor in group.flavors
        )
        return replace(group, flavors=flavors)

    return replace(spec, groups=tuple(changed(group) for group in spec.groups))


def _quota(quota: QuotaSpec, cell: CellSpec | None) -> QuotaSpec:
    if cell is None:
        return quota
    return QuotaSpec(quota.resource, cell.nominal, cell.borrowing_limit, cell.lending_limit)


def _of_queue(problem: Problem, own: Numbered) -> Problem:
    numbers = {**problem.numbers, "queue": own[0][1].queue}
    words = f"{own[0][1].queue}: {problem.message}"
    return replace(problem, path=f"cells[{own[0][0]}].queue", message=words, numbers=numbers)


def _of_cell(problem: Problem, spec: ClusterQueueSpec, own: Numbered) -> Problem:
    """Return a queue's problem at the cell that it is about, else at the queue."""
    found = _CELL.fullmatch(problem.path)
    if found:
        group, flavor, quota = (int(part) for part in found.groups()[:3])
        held = spec.groups[group].flavors[flavor]
        place = spec.name, held.flavor, held.quotas[quota].resource
        for number, cell in own:
            if cell.place == place:
                return replace(problem, path=f"cells[{number}].{found[4]}")
    return _of_queue(problem, own)
