"""Reads for pages and REST: the promises that somebody may see, with what belongs to them.

A team's rows are its members'; a cohort is visible to those who have a queue below it; kinds of
nodes, topologies and priorities are everybody's.
"""

from collections.abc import Iterable, Mapping

from django.db.models import Prefetch, Q, QuerySet

from queues.access import Actor, visible
from queues.choices import Fairness
from queues.models import (
    ApiToken,
    ClusterQueue,
    Cohort,
    LocalQueue,
    Membership,
    Namespace,
    PriorityClass,
    ResourceFlavor,
    Team,
    Topology,
)


def visible_teams(actor: Actor) -> QuerySet[Team]:
    """Return the teams that ``actor`` sees, with their members."""
    members = Prefetch("memberships", Membership.objects.select_related("user"))
    return visible(Team.objects.prefetch_related(members), actor, "pk")


def visible_namespaces(actor: Actor) -> QuerySet[Namespace]:
    """Return the namespaces that ``actor`` sees, with their owner."""
    return visible(Namespace.objects.select_related("team"), actor)


def visible_cluster_queues(actor: Actor) -> QuerySet[ClusterQueue]:
    """Return the cluster queues that ``actor`` sees, with owner, cohort and quotas."""
    queues = ClusterQueue.objects.select_related("team", "cohort").prefetch_related("quotas")
    return visible(queues, actor)


def visible_local_queues(actor: Actor) -> QuerySet[LocalQueue]:
    """Return the local queues that lead to a visible queue or stand in a visible namespace."""
    if actor.sees_everything:
        return LocalQueue.objects.all()
    queues = visible(ClusterQueue.objects.all(), actor).values("name")
    namespaces = visible(Namespace.objects.all(), actor).values("name")
    return LocalQueue.objects.filter(Q(cluster_queue__in=queues) | Q(namespace__in=namespaces))


def visible_cohorts(actor: Actor) -> QuerySet[Cohort]:
    """Return the cohorts above the queues that ``actor`` sees. Three queries."""
    cohorts = Cohort.objects.select_related("parent").prefetch_related("quotas")
    if actor.sees_everything:
        return cohorts
    own = visible(ClusterQueue.objects.exclude(cohort=None), actor)
    parents = dict(Cohort.objects.values_list("pk", "parent_id"))
    below = set(own.values_list("cohort_id", flat=True))
    return cohorts.filter(pk__in=_with_ancestors(below, parents))


def _with_ancestors(
    members: Iterable[int | None], parents: Mapping[int, int | None]
) -> frozenset[int]:
    found: set[int] = set()
    for member in members:
        step = member
        while step is not None and step not in found:
            found.add(step)
            step = parents.get(step)
    return frozenset(found)


def fairness_above(cohort: str | None) -> str:
    """Return what the tree of ``cohort`` shares by: what its top cohort says. One query."""
    columns = ("name", "parent__name", "fairness")
    known = {name: (parent, said) for name, parent, said in Cohort.objects.values_list(*columns)}
    said, seen = Fairness.NONE.value, set()
    while cohort in known and cohort not in seen:
        seen.add(cohort)
        cohort, said = known[cohort]
    return said


def all_flavors() -> QuerySet[ResourceFlavor]:
    """Return every kind of node."""
    return ResourceFlavor.objects.all()


def all_topologies() -> QuerySet[Topology]:
    """Return every topology with its levels."""
    return Topology.objects.prefetch_related("levels")


def all_priority_classes() -> QuerySet[PriorityClass]:
    """Return every priority class, highest first."""
    return PriorityClass.objects.all()


def tokens_of(actor: Actor) -> QuerySet[ApiToken]:
    """Return the tokens that ``actor`` holds; an admin sees everybody's."""
    tokens: QuerySet[ApiToken] = ApiToken.objects.select_related("user", "team")
    return tokens if actor.is_admin else tokens.filter(user=actor.user)
