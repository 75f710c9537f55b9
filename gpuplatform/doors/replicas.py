"""Work that is sent again: whether it is live already, and which replicas are too many."""

from collections.abc import Mapping
from dataclasses import replace

from django.db.models import QuerySet

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.manifests import Document
from queues.access import Actor, visible
from scheduling.descriptions import describe_workload
from scheduling.engine.terms import Status
from scheduling.models import Workload
from scheduling.rules import resolved
from scheduling.specs import WorkloadSpec
from scheduling.world import World

SCALED = ("Deployment", "LeaderWorkerSet")  # each replica is a workload of its own
NAMED = 10  # names of surplus replicas that an answer lists


def already_there(spec: WorkloadSpec, actor: Actor | None) -> str:
    """Return the id of a live workload made from the same document, or "".

    ``actor`` None is the system; anybody else hears of workloads that they may see.

    The number of replicas is no part of what one replica is: scaling leaves live ones alone.
    """
    rows = _live(spec.namespace, spec.kind).filter(name=spec.name)
    row = (rows if actor is None else visible(rows, actor)).first()
    if row is None or _one(spec.kind, row.template) != _one(spec.kind, spec.template):
        return ""
    return str(row.uid)


def standing(spec: WorkloadSpec, world: World, actor: Actor | None) -> str:
    """Return the id of a live workload that asks for exactly this, or "".

    Of work that was exported, everything counts, and not only the document it came from.
    """
    rows = _live(spec.namespace, spec.kind).filter(name=spec.name).prefetch_related("pod_sets")
    row = (rows if actor is None else visible(rows, actor)).first()
    asked = resolved(spec, world)
    usual = Workload._meta.get_field("grace_s").default  # noqa: SLF001
    asked = replace(
        asked,
        priority=world.priority_for(spec),
        grace_s=usual if spec.grace_s is None else spec.grace_s,
    )
    return "" if row is None or describe_workload(row) != asked else str(row.uid)


def surplus(document: Document, asked: int, actor: Actor | None) -> list[Diagnostic]:
    """Return a warning where more replicas are live than ``asked``; it cancels none of them.

    ``actor`` None is the system; anybody else hears of workloads that they may see.
    """
    if document.kind not in SCALED:
        return []
    rows = _live(document.namespace, document.kind).filter(name__startswith=f"{document.name}-")
    seen = rows if actor is None else visible(rows, actor)
    numbered = ((_number(row, document.name), row) for row in seen.only("name", "template"))
    extra = sorted((number, row.name) for number, row in numbered if number >= asked)
    if not extra:
        return []
    names = ", ".join(name for _, name in extra[:NAMED])
    numbers: dict[str, str | int] = {"asked": asked, "surplus": len(extra), "workloads": names}
    return [Diagnostic("SURPLUS_REPLICAS", document.subject, "spec.replicas", numbers)]


def _live(namespace: str, kind: str) -> QuerySet[Workload]:
    rows = Workload.objects.exclude(status=Status.FINISHED.value)
    return rows.filter(namespace=namespace, kind=kind)


def _one(kind: str, template: object) -> object:
    """Return the document as far as it describes one replica."""
    spec = template.get("spec") if isinstance(template, Mapping) else None
    if kind not in SCALED or not isinstance(template, Mapping) or not isinstance(spec, Mapping):
        return template
    return {**template, "spec": {key: spec[key] for key in spec if key != "replicas"}}


def _number(row: Workload, name: str) -> int:
    """Return which replica of the Deployment ``name`` this is; -1 for a stranger's workload."""
    metadata = (row.template or {}).get("metadata")
    number = row.name.removeprefix(f"{name}-")
    mine = isinstance(metadata, Mapping) and metadata.get("name") == name
    return int(number) if mine and number.isascii() and number.isdecimal() else -1
