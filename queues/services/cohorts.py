"""Writers of cohorts, declared ones and those that exist because somebody names them."""

from django.db import transaction

from queues.descriptions import as_json, describe_cohort
from queues.models import Cohort, FlavorQuota, User
from queues.rules import check_cohort
from queues.services.writing import Edit, in_use, refuse, require_row, store
from queues.specs import CohortSpec, ResourceGroupSpec


@transaction.atomic
def save_cohort(
    spec: CohortSpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> Cohort:
    """Create or change a cohort; a parent that nobody declared is made implicitly (K6).

    Raises:
        Rejected: the spec breaks a rule; a cohort cannot contain itself.
        Stale: the cohort changed since the caller saw it.
    """
    parents = cohort_parents()
    edit = Edit(Cohort, spec.name, actor, reason, if_version)
    row = edit.find(name=spec.name)
    refuse(check_cohort(spec, parents))
    former = row.parent if row else None
    change: tuple[object, object] = (describe_cohort(row) if row else None, spec)
    if row is not None and row.implicit:  # only named so far: to declare it is a change by itself
        change = (
            as_json(describe_cohort(row)) | {"declared": False},
            as_json(spec) | {"declared": True},
        )
    columns = {
        "name": spec.name,
        "parent": ensure_cohort(spec.parent, actor=actor) if spec.parent else None,
        "fair_weight": spec.fair_weight,
        "fairness": spec.fairness,
        "reclaim_to": spec.reclaim_to,
        "quota_source": spec.quota_source,
        "implicit": False,
    }
    written = store(
        edit,
        row,
        columns,
        change,
        lambda owner: replace_quotas(spec.groups, cohort=owner),
    )
    drop_unnamed(former, actor=actor)
    return written


def cohort_parents() -> dict[str, str | None]:
    """Return each cohort's parent by name.

    The rows are locked where the database can, all in one order, so that two edits cannot close
    a cycle together; SQLite has one writer anyway, and the loader holds a cycle inactive should
    one ever appear.
    """
    rows = Cohort.objects.select_for_update().order_by("pk").values_list("pk", "name", "parent_id")
    found = list(rows)
    names = {pk: name for pk, name, _ in found}
    return {name: names.get(parent) if parent else None for _, name, parent in found}


@transaction.atomic
def ensure_cohort(name: str, *, actor: User | None = None) -> Cohort:
    """Return the cohort ``name``, made implicitly if nobody declared it (K6)."""
    row = Cohort.objects.filter(name=name).first()
    if row is not None:
        return row
    edit = Edit(Cohort, name, actor)
    return store(edit, None, {"name": name, "implicit": True}, (None, CohortSpec(name)))


def drop_unnamed(cohort: Cohort | None, *, actor: User | None) -> None:
    """Delete an implicit cohort that nobody names any more, and its parents likewise."""
    while cohort is not None and cohort.implicit:
        if cohort.cluster_queues.exists() or cohort.children.exists():
            return
        parent = cohort.parent
        Edit(Cohort, cohort.name, actor).remove(cohort, describe_cohort(cohort))
        cohort = parent


@transaction.atomic
def delete_cohort(
    name: str, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> None:
    """Delete a cohort that has no members.

    Raises:
        Rejected: it is not there, or a queue or a cohort names it.
        Stale: it changed since the caller saw it.
    """
    edit = Edit(Cohort, name, actor, reason, if_version)
    row = edit.find(name=name)
    refuse(require_row(row))
    assert row is not None
    members = [*row.cluster_queues.all()[:5], *row.children.all()[:5]]
    refuse([in_use(", ".join(str(member) for member in members))] if members else [])
    parent = row.parent
    edit.remove(row, describe_cohort(row))
    drop_unnamed(parent, actor=actor)


def replace_quotas(groups: tuple[ResourceGroupSpec, ...], **owner: object) -> None:
    """Make the quota table of ``owner`` (``cluster_queue=`` or ``cohort=``) be ``groups``."""
    FlavorQuota.objects.filter(**owner).delete()
    FlavorQuota.objects.bulk_create(
        FlavorQuota(
            **owner,
            group=g,
            flavor_position=f,
            resource_position=r,
            flavor=flavor.flavor,
            resource=quota.resource,
            nominal=quota.nominal,
            borrowing_limit=quota.borrowing_limit,
            lending_limit=quota.lending_limit,
        )
        for g, group in enumerate(groups)
        for f, flavor in enumerate(group.flavors)
        for r, quota in enumerate(flavor.quotas)
    )
