"""What the pages of the promises show beside the visible rows: counts, choices, differences.

Which rows somebody sees is decided in ``queues.access`` and ``queues.selectors``.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext

from gpuplatform.common.models import AuditEntry
from gpuplatform.common.quantities import format_quantity
from gpuplatform.common.sealing import with_seals
from queues.choices import TeamRole
from queues.descriptions import as_json
from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    Membership,
    Namespace,
    ResourceFlavor,
    Team,
    Topology,
    User,
)

GPU = "nvidia.com/gpu"
USUAL_RESOURCES = (GPU, "cpu", "memory", "pods")
CHANGES_SHOWN = 10
SIDES = 2
TEAM_COLUMNS = (
    "name",
    "display_name",
    "cost_center",
    "accounting_mode",
    "members",
    "namespaces",
    "queues",
    "gpus_nominal",
)
PERSON_COLUMNS = ("username", "name", "email", "roles", "teams", "active", "last_sign_in")
AUDIT_COLUMNS = (
    "at",
    "actor",
    "action",
    "kind",
    "subject",
    "team",
    "reason",
    "before",
    "after",
    "request_id",
    "sealed",
)


# ---- teams -------------------------------------------------------------------------------------


def team_rows(teams: QuerySet[Team]) -> QuerySet[Any]:
    """Return teams with counts of what they have, and their promised GPUs. 1 query."""
    promised = (
        FlavorQuota.objects.filter(cluster_queue__team=OuterRef("pk"), resource=GPU)
        .order_by()
        .values("cluster_queue__team")
        .annotate(sum=Sum("nominal"))
        .values("sum")
    )
    return teams.annotate(
        members=Count("memberships", distinct=True),
        owned_namespaces=Count("namespaces", distinct=True),
        queues=Count("cluster_queues", distinct=True),
        gpus=Coalesce(Subquery(promised), 0),
    ).order_by("name")


def team_cells(rows: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """Yield teams as rows of an export."""
    for row in rows:
        shown = {name: getattr(row, name, None) for name in TEAM_COLUMNS}
        yield shown | {"namespaces": row.owned_namespaces, "gpus_nominal": row.gpus}


@dataclass(frozen=True, slots=True)
class TeamPage:
    """One team with everything that belongs to it."""

    team: Team
    members: list[Membership]
    namespaces: list[Namespace]
    queues: Sequence[ClusterQueue]
    local_queues: list[LocalQueue]
    changes: list[AuditEntry]

    @property
    def has_lead(self) -> bool:
        """Return whether somebody answers for the team."""
        return any(member.role == TeamRole.LEAD for member in self.members)

    @property
    def is_ready(self) -> bool:
        """Return whether the team can submit work, and somebody answers for it."""
        return bool(self.namespaces and self.queues and self.local_queues and self.has_lead)


def team_page(team: Team) -> TeamPage:
    """Return what belongs to a team. 6 queries."""
    cells = FlavorQuota.objects.filter(resource=GPU)
    queues = list(
        team.cluster_queues.select_related("cohort").prefetch_related(
            Prefetch("quotas", cells, to_attr="gpu_quotas")
        )
    )
    doors = LocalQueue.objects.filter(cluster_queue__in=[queue.name for queue in queues])
    changes = AuditEntry.objects.filter(team=team.name).exclude(subject_kind="Workload")
    return TeamPage(
        team=team,
        members=list(team.memberships.select_related("user").order_by("role", "user__username")),
        namespaces=list(team.namespaces.all()),
        queues=queues,
        local_queues=list(doors.order_by("namespace", "name")),
        changes=list(changes.order_by("-id")[:CHANGES_SHOWN]),
    )


# ---- people ------------------------------------------------------------------------------------


def person_rows(text: str = "") -> QuerySet[User]:
    """Return everybody by name, with roles and teams; narrowed by a text. 3 queries."""
    people: QuerySet[User] = User.objects.prefetch_related(
        "platform_roles",
        Prefetch("memberships", Membership.objects.select_related("team").order_by("team__name")),
    ).order_by("username")
    links = SocialAccount.objects.filter(user=OuterRef("pk"))
    people = people.annotate(is_linked=Exists(links))
    if not text:
        return people
    columns = ("username", "first_name", "last_name", "email")
    return people.filter(reduce(or_, (Q(**{f"{name}__icontains": text}) for name in columns)))


def person_cells(people: Iterable[User]) -> Iterable[dict[str, Any]]:
    """Yield people as rows of an export: ``datos:lead ia:member``."""
    for user in people:
        yield {
            "username": user.username,
            "name": user.get_full_name(),
            "email": user.email,
            "roles": " ".join(sorted(held.role for held in user.platform_roles.all())),
            "teams": " ".join(f"{m.team.name}:{m.role}" for m in user.memberships.all()),
            "active": user.is_active,
            "last_sign_in": user.last_login,
        }


# ---- choices of forms --------------------------------------------------------------------------


def flavor_choices() -> list[tuple[str, str]]:
    """Return the flavors that a quota row may name."""
    return [(name, name) for name in ResourceFlavor.objects.values_list("name", flat=True)]


def topology_choices() -> list[tuple[str, str]]:
    """Return the topologies that a flavor may name."""
    return [(name, name) for name in Topology.objects.values_list("name", flat=True)]


def resource_choices() -> list[str]:
    """Return the resources that a quota row offers: the usual ones, then those in use."""
    used = FlavorQuota.objects.order_by("resource").values_list("resource", flat=True).distinct()
    return list(dict.fromkeys([*USUAL_RESOURCES, *used]))


def team_choices() -> list[tuple[str, str]]:
    """Return the teams that may own a queue."""
    return [(team.name, str(team)) for team in Team.objects.all()]


def cohort_choices(without: str = "") -> list[tuple[str, str]]:
    """Return the cohorts that a queue or another cohort may be in."""
    names = Cohort.objects.exclude(name=without).values_list("name", flat=True)
    return [(name, name) for name in names]


def weight_part(row: ClusterQueue | Cohort) -> tuple[str, Decimal, Decimal] | None:
    """Return the cohort above, the own weight and that of all sisters; None without one."""
    above = row.cohort if isinstance(row, ClusterQueue) else row.parent
    if above is None:
        return None
    queues = above.cluster_queues.aggregate(sum=Coalesce(Sum("fair_weight"), Decimal(0)))["sum"]
    cohorts = above.children.aggregate(sum=Coalesce(Sum("fair_weight"), Decimal(0)))["sum"]
    return above.name, row.fair_weight, queues + cohorts


# ---- what two people changed at once -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clash:
    """One value: as it was when the form was opened, as it is now, as the form asks for."""

    label: str
    seen: str
    theirs: str
    yours: str

    @property
    def is_clash(self) -> bool:
        """Return whether both sides changed it, to different values."""
        return bool(self.yours) and len({self.seen, self.theirs, self.yours}) > SIDES


def clashes(seen: object, theirs: object, yours: object) -> list[Clash]:
    """Return what differs from ``seen``; ``yours`` is "" where only the others changed it."""
    columns = [_flat(seen), _flat(as_json(theirs)), _flat(as_json(yours))]
    labels = sorted(set().union(*columns))
    rows = [Clash(label, *(column.get(label, "-") for column in columns)) for label in labels]
    return [
        replace(row, yours="") if row.yours in {row.seen, row.theirs} else row
        for row in rows
        if not row.seen == row.theirs == row.yours
    ]


def newer_changes(kind: str, subject: str, count: int) -> list[AuditEntry]:
    """Return the last changes of an object, newest first: one for each version not seen."""
    entries = AuditEntry.objects.filter(subject_kind=kind, subject=subject).order_by("-id")
    return list(entries[: min(max(count, 0), CHANGES_SHOWN)])


def as_seen(spec: object) -> str:
    """Return a spec as the text that an edit form carries along."""
    return json.dumps(as_json(spec))


def _flat(value: Any, path: str = "") -> dict[str, str]:
    """Return every leaf of a spec by a name that people can read."""
    if isinstance(value, Mapping):
        if "flavor" in value and "quotas" in value:
            return _flat_quotas(value)
        parts = [_flat(inner, f"{path}.{key}" if path else key) for key, inner in value.items()]
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        parts = [_flat(inner, path) for inner in value]
    else:
        shown = gettext("none") if value in (None, "", [], {}) else _text(value)
        return {path.replace("_", " "): shown} if path else {}
    return {key: text for part in parts for key, text in part.items()}


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _flat_quotas(flavor: Mapping[str, Any]) -> dict[str, str]:
    cells = {}
    for quota in flavor["quotas"]:
        where = f"{flavor['flavor']} {quota['resource']}"
        for name in ("nominal", "borrowing_limit", "lending_limit"):
            amount = quota.get(name)
            cells[f"{where}: {name.replace('_', ' ')}"] = (
                gettext("no limit")
                if amount is None
                else format_quantity(quota["resource"], int(amount))
            )
    return cells


# ---- audit -------------------------------------------------------------------------------------


def audit_rows(entries: QuerySet[AuditEntry], **wanted: str) -> QuerySet[AuditEntry]:
    """Return audit entries, newest first, narrowed by exact values and a text in the subject.

    Each says by ``sealed`` whether the chain of the trail vouches for it.
    """
    text = wanted.pop("q", "")
    exact = {name: value for name, value in wanted.items() if value}
    entries = with_seals(entries).filter(**exact)
    return (entries.filter(subject__icontains=text) if text else entries).order_by("-at", "-id")


def audit_choices(entries: QuerySet[AuditEntry]) -> dict[str, list[str]]:
    """Return which actors, actions and kinds occur. 3 queries."""
    return {
        name: list(entries.order_by(name).values_list(name, flat=True).distinct())
        for name in ("actor_name", "action", "subject_kind")
    }


def audit_cells(rows: Iterable[AuditEntry]) -> Iterable[dict[str, Any]]:
    """Yield audit entries as rows of an export."""
    columns = [name for name in AUDIT_COLUMNS if name != "actor"]  # a query a row
    for row in rows:
        shown = {name: getattr(row, name, None) for name in columns}
        yield shown | {
            "actor": row.actor_name,
            "kind": row.subject_kind,
            "before": json.dumps(row.before) if row.before is not None else "",
            "after": json.dumps(row.after) if row.after is not None else "",
        }


@dataclass(frozen=True, slots=True)
class Change:
    """One audit entry with what it changed, in readable values."""

    entry: AuditEntry
    parts: list[Clash]

    @property
    def person(self) -> str:
        """Return whose membership was changed, or ""."""
        known = self.entry.after or self.entry.before or {}
        return str(known.get("user", "")) if self.entry.subject_kind == "Team" else ""


def with_changes(entries: Iterable[AuditEntry]) -> list[Change]:
    """Return entries with the values that differ between before and after."""
    return [Change(entry, _parts(entry)) for entry in entries]


def _parts(entry: AuditEntry) -> list[Clash]:
    before, after = _flat(entry.before or {}), _flat(entry.after or {})
    labels = [label for label in {**before, **after} if before.get(label) != after.get(label)]
    return [Clash(label, "", before.get(label, "-"), after.get(label, "-")) for label in labels]
