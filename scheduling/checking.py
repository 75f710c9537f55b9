"""Writers of admission checks: which questions work of which queues has to pass."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from django.db import transaction

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.likeness import nearest_name
from gpuplatform.common.problems import Problem
from queues.models import ClusterQueue, User
from queues.rules.words import check_name
from queues.services.writing import Edit, refuse, require_row, store
from scheduling.checks import ALL_QUEUES, KINDS, MANUAL
from scheduling.models import AdmissionCheck
from scheduling.specs import CheckSpec

MOST_QUEUES, LONGEST = 64, 500


def describe_check(row: AdmissionCheck) -> CheckSpec:
    """Return the check as it stands in the tables."""
    return CheckSpec(row.name, row.kind, tuple(row.queues), row.parameters, row.description)


@transaction.atomic
def save_check(
    spec: CheckSpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> AdmissionCheck:
    """Create or change an admission check; an equal one changes nothing.

    Raises:
        Rejected: the spec breaks a rule.
        Stale: the check changed since the caller saw it.
    """
    edit = Edit(AdmissionCheck, spec.name, actor, reason, if_version)
    row = edit.find(name=spec.name)
    refuse(check_check(spec))
    columns: dict[str, Any] = {
        "name": spec.name,
        "kind": spec.kind,
        "queues": list(spec.queues),
        "parameters": dict(spec.parameters),
        "description": spec.description,
    }
    return store(edit, row, columns, (describe_check(row) if row else None, spec))


def save_named(
    spec: CheckSpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> AdmissionCheck:
    """Say who answers a check, as a manifest does; what it leaves out stays as it is."""
    row = AdmissionCheck.objects.filter(name=spec.name).first()
    if row is not None:
        stands = describe_check(row)
        spec = replace(
            spec,
            queues=spec.queues or stands.queues,
            parameters=spec.parameters or stands.parameters,
            description=spec.description or stands.description,
        )
    return save_check(spec, actor=actor, reason=reason, if_version=if_version)


@transaction.atomic
def name_queue(
    queue: str, names: Collection[str], left: Collection[str], *, actor: User | None, reason: str
) -> None:
    """Let these checks be asked of the work of a queue, and the ``left`` ones no more.

    A check that is not there is made, for people to answer: work waits rather than slips through.

    Raises:
        Rejected: a name is none, or a check has too many queues.
    """
    rows = {row.name: row for row in AdmissionCheck.objects.filter(name__in=[*names, *left])}
    for name in sorted({*names, *left}):
        spec = describe_check(rows[name]) if name in rows else CheckSpec(name, MANUAL)
        others = tuple(one for one in spec.queues if one != queue)
        if name in names and queue not in spec.queues and ALL_QUEUES not in spec.queues:
            save_check(replace(spec, queues=(*others, queue)), actor=actor, reason=reason)
        elif name in left and name in rows:
            save_check(replace(spec, queues=others), actor=actor, reason=reason)


@transaction.atomic
def delete_check(
    name: str, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> None:
    """Delete an admission check; work that waits for it alone may start.

    Raises:
        Rejected: it is not there.
        Stale: it changed since the caller saw it.
    """
    edit = Edit(AdmissionCheck, name, actor, reason, if_version)
    row = edit.find(name=name)
    refuse(require_row(row))
    assert row is not None
    edit.remove(row, describe_check(row))


def check_check(spec: CheckSpec) -> Iterator[Problem]:
    """Yield what is wrong with an admission check."""
    yield from check_name(spec.name)
    if spec.kind not in KINDS:
        numbers = {"kind": spec.kind[:64], "known": ", ".join(sorted(KINDS))}
        yield Diagnostic("UNKNOWN_CHECK_KIND", "", "kind", numbers).as_problem()
    if len(spec.queues) > MOST_QUEUES:
        limits = {"value": len(spec.queues), "low": 0, "high": MOST_QUEUES}
        yield Diagnostic("OUT_OF_RANGE", "", "queues", limits).as_problem()
    known = {ALL_QUEUES, *ClusterQueue.objects.values_list("name", flat=True)}
    for index, queue in enumerate(spec.queues[:MOST_QUEUES]):
        if queue not in known:
            nearest = nearest_name(queue, known - {ALL_QUEUES})
            asked = {"queue": queue[:64], "cause": "cluster_queue"}
            asked |= {"nearest": nearest} if nearest else {}
            yield Diagnostic("QUEUE_NOT_FOUND", "", f"queues[{index}]", asked).as_problem()
    if len(spec.description) > LONGEST:
        yield Diagnostic("TOO_LONG", "", "description", {}).as_problem()
