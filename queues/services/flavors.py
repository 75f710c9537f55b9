"""Writers of resource flavors and topologies."""

from django.db import transaction

from gpuplatform.common.problems import Problem
from queues.descriptions import as_json, describe_flavor, describe_topology
from queues.models import FlavorQuota, ResourceFlavor, Topology, TopologyLevel, User
from queues.rules import check_flavor, check_topology
from queues.services.writing import Edit, in_use, refuse, require_row, store
from queues.specs import FlavorSpec, TopologySpec


@transaction.atomic
def save_flavor(
    spec: FlavorSpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> ResourceFlavor:
    """Create or change a flavor. Its topology may be declared later.

    Raises:
        Rejected: the spec breaks a rule; a topology once set cannot change (K1).
        Stale: the flavor changed since the caller saw it.
    """
    edit = Edit(ResourceFlavor, spec.name, actor, reason, if_version)
    row = edit.find(name=spec.name)
    current = describe_flavor(row) if row else None
    refuse(check_flavor(spec, current))
    return store(edit, row, as_json(spec), (current, spec))


@transaction.atomic
def delete_flavor(
    name: str, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> None:
    """Delete a flavor of which nobody is promised anything.

    Raises:
        Rejected: it is not there, or a quota names it.
        Stale: it changed since the caller saw it.
    """
    edit = Edit(ResourceFlavor, name, actor, reason, if_version)
    row = edit.find(name=name)
    refuse(require_row(row))
    assert row is not None
    refuse(_promises_of(name))
    edit.remove(row, describe_flavor(row))


def _promises_of(flavor: str) -> list[Problem]:
    quotas = FlavorQuota.objects.filter(flavor=flavor).select_related("cluster_queue", "cohort")
    names = sorted({str(quota.cluster_queue or quota.cohort) for quota in quotas})
    return [in_use(", ".join(names[:5]))] if names else []


@transaction.atomic
def save_topology(
    spec: TopologySpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> Topology:
    """Create or change a topology.

    Raises:
        Rejected: the spec breaks a rule (K60).
        Stale: the topology changed since the caller saw it.
    """
    edit = Edit(Topology, spec.name, actor, reason, if_version)
    row = edit.find(name=spec.name)
    current = describe_topology(row) if row else None
    refuse(check_topology(spec, current))
    return store(
        edit,
        row,
        {"name": spec.name},
        (current, spec),
        lambda written: _replace_levels(written, spec.levels),
    )


def _replace_levels(topology: Topology, levels: tuple[str, ...]) -> None:
    topology.levels.all().delete()
    TopologyLevel.objects.bulk_create(
        TopologyLevel(topology=topology, position=position, node_label=label)
        for position, label in enumerate(levels)
    )


@transaction.atomic
def delete_topology(
    name: str, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> None:
    """Delete a topology that no flavor names.

    Raises:
        Rejected: it is not there, or a flavor names it.
        Stale: it changed since the caller saw it.
    """
    edit = Edit(Topology, name, actor, reason, if_version)
    row = edit.find(name=name)
    refuse(require_row(row))
    assert row is not None
    flavors = sorted(ResourceFlavor.objects.filter(topology=name).values_list("name", flat=True))
    refuse([in_use(", ".join(flavors[:5]))] if flavors else [])
    edit.remove(row, describe_topology(row))
