"""REST's doors to the promises: JSON in, spec out, one service or selector call."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from django.db import transaction
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common.consequences import carry_out
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.dry_run import PARAMETER as DRY_RUN
from gpuplatform.common.dry_run import is_dry_run
from gpuplatform.common.lists import PARAMETERS as LISTS
from gpuplatform.common.lists import CSVRenderer, csv_answer, wants_csv
from gpuplatform.common.paging import PAGES, ByName, CheckedView
from gpuplatform.common.why import PARAMETER as REASON
from gpuplatform.common.why import given_reason
from gpuplatform.common.yamls import YAMLRenderer, wants_yaml, yaml_answer
from queues import descriptions, selectors
from queues.access import Actor, HasScope, actor_of, demand, demand_visible, insist
from queues.bodies import read_cluster_queue, read_cohort, read_flavor, read_topology
from queues.choices import Fairness
from queues.manifests.export import manifest_of, versioned
from queues.models import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Team, Topology
from queues.models.fields import Versioned
from queues.selectors import fairness_above
from queues.serializers import (
    CLUSTER_QUEUE,
    COHORT,
    DELETED,
    FLAVOR,
    LOCAL_QUEUE,
    TEAM,
    TOPOLOGY,
    ClusterQueueSerializer,
    CohortSerializer,
    FlavorSerializer,
    TopologySerializer,
    as_answer,
    listed,
    saving,
    shown,
)
from queues.services import (
    delete_cluster_queue,
    delete_cohort,
    delete_flavor,
    delete_topology,
    save_cluster_queue,
    save_cohort,
    save_flavor,
    save_topology,
)
from queues.versions import etag, seen_version

Row = TypeVar("Row", bound=Versioned)


@dataclass(frozen=True, slots=True)
class Keeper(Generic[Row]):
    """How a body becomes a row: ``read(name, body, changes=)``, then ``save`` of what was read."""

    read: Callable[..., Any]
    save: Callable[..., Row]


FILE_CHUNK = 500  # rows read at once for a file


class ByNamespace(ByName):
    """Pages by namespace and name."""

    ordering: Any = ("namespace", "name")


class _Rows(CheckedView, ABC, Generic[Row]):
    """What lists and single objects of one kind share."""

    permission_classes = (HasScope,)
    scopes: ClassVar[Mapping[str, str]] = {"PUT": "quota:write", "DELETE": "quota:write"}

    @abstractmethod
    def rows(self, actor: Actor) -> QuerySet[Row]:
        """Return the rows that ``actor`` sees."""

    @abstractmethod
    def spec(self, row: Row) -> object:
        """Return what ``row`` promises."""

    def answer(self, row: Row) -> dict[str, Any]:
        """Return ``row`` as JSON with its version."""
        return as_answer(self.spec(row)) | {"version": row.version}


class _List(_Rows[Row]):
    pages: ClassVar[type[ByName]] = ByName
    parameters = {"GET": PAGES}
    renderer_classes = (JSONRenderer, CSVRenderer, YAMLRenderer)

    @extend_schema(parameters=LISTS)
    def get(self, request: Request) -> HttpResponseBase:
        """Return the visible objects, a page at a time, or all of them as a file."""
        pages = self.pages()
        order = pages.get_ordering(request, self.rows(actor_of(request)), self)
        rows = self.rows(actor_of(request)).order_by(*order)
        if wants_yaml(request):
            specs = (self.spec(row) for row in rows.iterator(chunk_size=FILE_CHUNK))
            return yaml_answer(request, (manifest_of(spec) for spec in specs))
        if wants_csv(request):
            found = (self.answer(row) for row in rows.iterator(chunk_size=FILE_CHUNK))
            return csv_answer(request, request.path.split("/")[-2], found)
        page = pages.paginate_queryset(rows, request, view=self)
        return pages.get_paginated_response([self.answer(row) for row in page or []])


class _Detail(_Rows[Row]):
    renderer_classes = (JSONRenderer, YAMLRenderer)
    parameters = {"PUT": ("dry_run", "reason"), "DELETE": ("dry_run", "reason")}
    versioned = ("PUT", "DELETE")

    def get(self, request: Request, **names: str) -> HttpResponseBase:
        """Return one object; its ETag is what If-Match wants."""
        row = get_object_or_404(self.rows(actor_of(request)), **names)
        if not wants_yaml(request):
            return self.tagged(row)
        return yaml_answer(request, [versioned(manifest_of(self.spec(row)), row.version)])

    def tagged(self, row: Row) -> Response:
        """Return ``row`` with its ETag."""
        return Response(self.answer(row), headers={"ETag": etag(row.version)})

    def write(self, request: Request, name: str, keeper: Keeper[Row]) -> Response:
        """Let an editor of quotas save the object; what that means is told beside it.

        A dry run decides and tells the same, and keeps nothing.
        """
        actor, only_asked = actor_of(request), is_dry_run(request)
        reason = given_reason(request)
        found = self.rows(actor).filter(name=name).first()
        if not actor.may_edit_quota:
            demand_visible(found is not None)
            demand(False)
        seen = seen_version(request, actor, found)
        spec = keeper.read(name, request.data, changes=found is not None)

        def act() -> tuple[Row, dict[str, Any], list[Diagnostic]]:
            row = keeper.save(spec, actor=actor.user, if_version=seen, reason=reason)
            return row, self.answer(row), self.doubts(row)

        (row, answer, doubts), told = carry_out(spec, act, keep=not only_asked)
        answer |= {"warnings": [warning.as_json() for warning in (*doubts, *told)]}
        if only_asked:
            return Response(answer | {"dry_run": True})
        code = status.HTTP_200_OK if found else status.HTTP_201_CREATED
        return Response(answer, code, headers={"ETag": etag(row.version)})

    def remove(self, request: Request, name: str, delete: Callable[..., None]) -> Response:
        """Let an editor of quotas delete the object, if nothing needs it any more.

        A dry run decides the same, and keeps it.
        """
        actor, only_asked = actor_of(request), is_dry_run(request)
        found = self.rows(actor).filter(name=name).first()
        demand_visible(found is not None)
        insist(actor, "may_edit_quota")
        seen, reason = seen_version(request, actor, found), given_reason(request)
        with transaction.atomic():
            delete(name, actor=actor.user, if_version=seen, reason=reason)
            transaction.set_rollback(only_asked)
        if only_asked:
            return Response({"name": name, "dry_run": True})
        return Response(status=status.HTTP_204_NO_CONTENT)

    def doubts(self, row: Row) -> list[Diagnostic]:
        """Return what a writer of ``row`` should know: nothing, unless its kind says more."""
        del row
        return []


def _implicit(subject: str, path: str, cohort: Cohort | None) -> list[Diagnostic]:
    """Return a warning about a cohort that is there only because somebody named it."""
    if cohort is None or not cohort.implicit:
        return []
    return [Diagnostic("COHORT_IMPLICIT", subject, path, {"cohort": cohort.name})]


def _weight(subject: str, row: ClusterQueue | Cohort, above: Cohort | None) -> list[Diagnostic]:
    """Return a warning about a weight in a tree that shares by nothing."""
    if row.fair_weight == 1 or fairness_above(above.name if above else None) != Fairness.NONE:
        return []
    numbers = {"weight": f"{row.fair_weight.normalize():f}"}
    return [Diagnostic("FAIR_WEIGHT_KEPT", subject, "fair_weight", numbers)]


class _Teams:
    def rows(self, actor: Actor) -> QuerySet[Team]:
        return selectors.visible_teams(actor)

    def spec(self, row: Team) -> object:
        return descriptions.describe_team(row)


@listed("teams_list", TEAM)
class TeamList(_Teams, _List[Team]):
    """``GET /teams/``."""


@shown(TEAM)
class TeamDetail(_Teams, _Detail[Team]):
    """``GET /teams/<name>/``."""


class _Cohorts:
    def rows(self, actor: Actor) -> QuerySet[Cohort]:
        return selectors.visible_cohorts(actor)

    def spec(self, row: Cohort) -> object:
        return descriptions.describe_cohort(row)


@listed("cohorts_list", COHORT)
class CohortList(_Cohorts, _List[Cohort]):
    """``GET /cohorts/``."""


@shown(COHORT)
class CohortDetail(_Cohorts, _Detail[Cohort]):
    """``GET`` and ``PUT /cohorts/<name>/``."""

    @saving(CohortSerializer, COHORT)
    def put(self, request: Request, name: str) -> Response:
        """Make the cohort be what the body says."""
        return self.write(request, name, Keeper(read_cohort, save_cohort))

    @extend_schema(responses=DELETED, parameters=[DRY_RUN, REASON])
    def delete(self, request: Request, name: str) -> Response:
        """Delete the cohort; refused while something needs it."""
        return self.remove(request, name, delete_cohort)

    def doubts(self, row: Cohort) -> list[Diagnostic]:
        """Return whether the parent is no more than a name, and the weight no more than kept."""
        subject = f"Cohort/{row.name}"
        return [*_implicit(subject, "parent", row.parent), *_weight(subject, row, row.parent)]


class _ClusterQueues:
    def rows(self, actor: Actor) -> QuerySet[ClusterQueue]:
        return selectors.visible_cluster_queues(actor)

    def spec(self, row: ClusterQueue) -> object:
        return descriptions.describe_cluster_queue(row)


@listed("cluster_queues_list", CLUSTER_QUEUE)
class ClusterQueueList(_ClusterQueues, _List[ClusterQueue]):
    """``GET /cluster-queues/``."""


@shown(CLUSTER_QUEUE)
class ClusterQueueDetail(_ClusterQueues, _Detail[ClusterQueue]):
    """``GET`` and ``PUT /cluster-queues/<name>/``."""

    @saving(ClusterQueueSerializer, CLUSTER_QUEUE)
    def put(self, request: Request, name: str) -> Response:
        """Make the cluster queue be what the body says."""
        return self.write(request, name, Keeper(read_cluster_queue, save_cluster_queue))

    @extend_schema(responses=DELETED, parameters=[DRY_RUN, REASON])
    def delete(self, request: Request, name: str) -> Response:
        """Delete the queue; refused while something needs it."""
        return self.remove(request, name, delete_cluster_queue)

    def doubts(self, row: ClusterQueue) -> list[Diagnostic]:
        """Return whether the cohort is no more than a name, and the weight no more than kept."""
        subject = f"ClusterQueue/{row.name}"
        return [*_implicit(subject, "cohort", row.cohort), *_weight(subject, row, row.cohort)]


class _LocalQueues:
    def rows(self, actor: Actor) -> QuerySet[LocalQueue]:
        return selectors.visible_local_queues(actor)

    def spec(self, row: LocalQueue) -> object:
        return descriptions.describe_local_queue(row)


@listed("local_queues_list", LOCAL_QUEUE)
class LocalQueueList(_LocalQueues, _List[LocalQueue]):
    """``GET /local-queues/``."""

    pages = ByNamespace


@shown(LOCAL_QUEUE)
class LocalQueueDetail(_LocalQueues, _Detail[LocalQueue]):
    """``GET /local-queues/<namespace>/<name>/``."""


class _Flavors:
    def rows(self, actor: Actor) -> QuerySet[ResourceFlavor]:
        del actor  # kinds of nodes are everybody's
        return selectors.all_flavors()

    def spec(self, row: ResourceFlavor) -> object:
        return descriptions.describe_flavor(row)


@listed("flavors_list", FLAVOR)
class FlavorList(_Flavors, _List[ResourceFlavor]):
    """``GET /flavors/``."""


@shown(FLAVOR)
class FlavorDetail(_Flavors, _Detail[ResourceFlavor]):
    """``GET`` and ``PUT /flavors/<name>/``."""

    @saving(FlavorSerializer, FLAVOR)
    def put(self, request: Request, name: str) -> Response:
        """Make the flavor be what the body says."""
        return self.write(request, name, Keeper(read_flavor, save_flavor))

    @extend_schema(responses=DELETED, parameters=[DRY_RUN, REASON])
    def delete(self, request: Request, name: str) -> Response:
        """Delete the flavor; refused while something needs it."""
        return self.remove(request, name, delete_flavor)


class _Topologies:
    def rows(self, actor: Actor) -> QuerySet[Topology]:
        del actor  # how near nodes are is everybody's
        return selectors.all_topologies()

    def spec(self, row: Topology) -> object:
        return descriptions.describe_topology(row)


@listed("topologies_list", TOPOLOGY)
class TopologyList(_Topologies, _List[Topology]):
    """``GET /topologies/``."""


@shown(TOPOLOGY)
class TopologyDetail(_Topologies, _Detail[Topology]):
    """``GET`` and ``PUT /topologies/<name>/``."""

    @saving(TopologySerializer, TOPOLOGY)
    def put(self, request: Request, name: str) -> Response:
        """Make the topology be what the body says."""
        return self.write(request, name, Keeper(read_topology, save_topology))

    @extend_schema(responses=DELETED, parameters=[DRY_RUN, REASON])
    def delete(self, request: Request, name: str) -> Response:
        """Delete the topology; refused while something needs it."""
        return self.remove(request, name, delete_topology)
