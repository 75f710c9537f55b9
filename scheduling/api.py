"""REST's doors to workloads and nodes: JSON in, spec out, one service or selector, answer."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import Prefetch, QuerySet, prefetch_related_objects
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.generics import ListAPIView, get_object_or_404
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common import clock
from gpuplatform.common.dry_run import PARAMETER as DRY_RUN
from gpuplatform.common.dry_run import is_dry_run
from gpuplatform.common.lists import PARAMETERS as LISTS
from gpuplatform.common.lists import CSVRenderer, batched, chosen_ordering, csv_answer, wants_csv
from gpuplatform.common.paging import PAGES, CheckedView, NewestFirst, truth
from gpuplatform.common.parsers import StrictJSONParser
from gpuplatform.common.rest_shapes import results_of
from gpuplatform.common.why import PARAMETER as REASON
from gpuplatform.common.why import given_reason
from gpuplatform.common.yamls import YAMLRenderer, wants_yaml, yaml_answer
from queues.access import SUBMITTERS, Actor, HasScope, actor_of, demand, visible
from queues.services.writing import refuse
from scheduling.descriptions import describe_workload
from scheduling.engine.terms import Status
from scheduling.following import PARAMETERS as FOLLOWED
from scheduling.following import EventRenderer, follow_workloads, is_followed
from scheduling.inputs import WorkloadChangeInput, WorkloadInput
from scheduling.loader import load_platform
from scheduling.manifests.export import manifest_of
from scheduling.models import Workload, WorkloadEvent
from scheduling.priorities import check_number
from scheduling.rest_shapes import ALERT, AVAILABILITY, FRAGMENTS
from scheduling.selectors.alerts import alert_lines, cleared_lines, current_findings
from scheduling.selectors.availability import read_availability
from scheduling.selectors.discretion import Discretion
from scheduling.selectors.exports import described, pod_classes
from scheduling.selectors.forecast import forecast_spec
from scheduling.selectors.foreseen import foresee
from scheduling.selectors.fragments import fragment_json, read_fragments
from scheduling.serializers import (
    JUDGED,
    NewWorkloadSerializer,
    WorkloadRowSerializer,
    WorkloadSerializer,
)
from scheduling.services import (
    cancel_workload,
    load_world,
    owner_of,
    submit_workload,
    within_rights,
)
from scheduling.switching import change
from scheduling.workload_body import read_change, read_workload

CHUNK = 500  # rows read at once for a file


class WorkloadFilter(django_filters.FilterSet):  # type: ignore[misc]  # untyped
    """Filters of the workload list; ``status``, ``queue`` and ``team`` take several, with commas.

    ``state`` is an older name of ``status`` and does the same.
    """

    status = django_filters.BaseInFilter(field_name="status")
    state = django_filters.BaseInFilter(field_name="status", label="The same as status.")
    queue = django_filters.BaseInFilter(field_name="queue_name")
    team = django_filters.BaseInFilter(field_name="team__name")
    namespace = django_filters.CharFilter()
    name = django_filters.CharFilter(lookup_expr="icontains")

    class Meta:
        model = Workload
        fields: tuple[str, ...] = ()


class AsFile(CheckedView):
    """A list that is a file as well; stands before DRF's view of lists."""

    renderer_classes: tuple[type[BaseRenderer], ...] = (JSONRenderer, CSVRenderer, YAMLRenderer)
    orderings: tuple[str, ...] = ()

    def manifests(self, rows: QuerySet[Any]) -> Iterator[Mapping[str, Any]]:
        """Yield rows as documents."""
        raise NotImplementedError

    def is_file(self, request: Request) -> bool:
        """Return whether the list is asked for as a file."""
        return wants_csv(request) or wants_yaml(request)

    def file(self, request: Request) -> HttpResponseBase:
        """Return all rows of the filter, 500 at a time."""
        view: Any = self
        rows = view.filter_queryset(view.get_queryset())
        usual = view.pagination_class.ordering[0].lstrip("-")
        order = chosen_ordering(request, self.orderings or (usual,))
        rows = rows.order_by(*filter(None, (order, *view.pagination_class.ordering)))
        if wants_yaml(request):
            return yaml_answer(request, self.manifests(rows))
        found = (
            shown
            for chunk in batched(rows.iterator(chunk_size=CHUNK), CHUNK)
            for shown in view.get_serializer(chunk, many=True).data
        )
        return csv_answer(request, request.path.split("/")[-2], found)


class WorkloadsView(AsFile, ListAPIView[Workload]):
    """``/api/v1/workloads/``: the visible workloads, and the way to submit one."""

    parser_classes = (StrictJSONParser,)
    permission_classes = (HasScope,)
    scopes = {"POST": "workloads:submit"}
    renderer_classes = (*AsFile.renderer_classes, EventRenderer)
    parameters = {
        "GET": (*PAGES, *WorkloadFilter.base_filters, *(one.name for one in FOLLOWED)),
        "POST": ("dry_run",),
    }
    pagination_class = NewestFirst
    serializer_class = WorkloadRowSerializer
    filter_backends = (django_filters.rest_framework.DjangoFilterBackend,)
    filterset_class = WorkloadFilter
    queryset = Workload.objects.select_related("team")
    orderings = ("created_at", "name", "namespace", "priority", "gpus", "status")
    refusals = {"GET": (HTTPStatus.GONE, HTTPStatus.NOT_IMPLEMENTED)}  # of what is followed

    def get_queryset(self) -> QuerySet[Workload]:
        """Return the rows that the actor sees."""
        return visible(super().get_queryset(), actor_of(self.request))

    def get_serializer_context(self) -> dict[str, Any]:
        """Return DRF's context with the reader, whose sight decides what rows say."""
        actor = actor_of(self.request)
        return {**super().get_serializer_context(), "discretion": Discretion(actor)}

    @extend_schema(parameters=[*LISTS, *FOLLOWED])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a file is no Response
        """Return one page, newest first, all rows as a file, or a stream of what changes."""
        known = [status.value for status in Status]
        for name in ("status", "state"):
            asked = request.query_params.get(name, "")
            if asked and not set(asked.split(",")) <= set(known):
                words = _("There is no such status; known are {known}.")
                raise ValidationError({name: [words.format(known=", ".join(known))]})
        if is_followed(request):
            return self._followed(request)
        as_file = self.is_file(request)
        return self.file(request) if as_file else super().get(request, *args, **kwargs)

    def _followed(self, request: Request) -> HttpResponseBase:
        """Return the stream of the rows of the filter."""
        wanted = request.query_params
        chosen_ordering(request, self.orderings)  # a stream has none, but a wrong one is told

        def seen(actor: Actor) -> QuerySet[Workload]:
            return visible(Workload.objects.select_related("team"), actor)

        def filtered(actor: Actor) -> QuerySet[Workload]:
            found: QuerySet[Workload] = WorkloadFilter(wanted, queryset=seen(actor)).qs
            return found.order_by(*NewestFirst.ordering)

        return follow_workloads(request, filtered, seen)

    def manifests(self, rows: QuerySet[Workload]) -> Iterator[Mapping[str, Any]]:
        """Yield what each workload asks for, as Kueue's Workload."""
        classes = pod_classes()
        return (manifest_of(spec, classes) for spec in described(rows))

    @extend_schema(
        request=WorkloadInput,
        responses={200: JUDGED, 201: WorkloadSerializer},
        parameters=[DRY_RUN],
    )
    def post(self, request: Request) -> Response:
        """Submit a workload; it is pending until a cycle admits it."""
        dry_run = is_dry_run(request)
        spec, actor = read_workload(request.data), actor_of(request)
        world = within_rights(spec, load_world(works=dry_run), actor)  # only a forecast asks
        taken = submit_workload(spec, actor=actor.user, dry_run=dry_run, world=world)
        if taken.workload is None:
            warnings = [diagnostic.as_json() for diagnostic in taken.diagnostics]
            owner = owner_of(spec, world)
            told = forecast_spec(spec, world, actor, owner.pk if owner else None).as_json()
            answer = {"dry_run": True, "warnings": warnings, "forecast": told}
            return Response(answer, HTTPStatus.OK)
        address = reverse("api-workload", args=[taken.workload.uid])
        prefetch_related_objects([taken.workload], "pod_sets", "events")
        shown = NewWorkloadSerializer(taken.workload, context={"actor": actor}).data
        return Response(shown, HTTPStatus.CREATED, headers={"Location": address})


class WorkloadView(CheckedView):
    """``/api/v1/workloads/<uid>/``: one workload, and the ways to resize and to cancel it."""

    parser_classes = (StrictJSONParser,)
    renderer_classes = (JSONRenderer, YAMLRenderer)
    permission_classes = (HasScope,)
    scopes = {"PATCH": "workloads:submit", "DELETE": "workloads:submit"}
    parameters = {"DELETE": ("reason",)}

    @extend_schema(responses=WorkloadSerializer)
    def get(self, request: Request, uid: UUID) -> HttpResponseBase:
        """Return the workload with its pods, placements and story."""
        row, context = self._row(request, uid), {"actor": actor_of(request)}
        if wants_yaml(request):
            return yaml_answer(request, [manifest_of(describe_workload(row), pod_classes())])
        return Response(WorkloadSerializer(row, context=context).data)

    @extend_schema(request=WorkloadChangeInput, responses=WorkloadSerializer)
    def patch(self, request: Request, uid: UUID) -> Response:
        """Change size, activity or gates of a live workload, or report how far it is."""
        row, actor = self._row(request, uid), actor_of(request)
        demand(actor.may_submit(row.team_id), SUBMITTERS)
        asked = read_change(request.data)
        number = None if asked.priority == row.priority else asked.priority
        refuse([found.as_problem() for found in check_number(number, actor)])
        change(row.uid, asked, actor=actor.user)
        context = {"actor": actor}
        return Response(WorkloadSerializer(self._row(request, uid), context=context).data)

    @extend_schema(responses={204: None}, parameters=[REASON])
    def delete(self, request: Request, uid: UUID) -> Response:
        """Cancel the workload."""
        row, actor = self._row(request, uid), actor_of(request)
        demand(actor.may_submit(row.team_id), SUBMITTERS)
        cancel_workload(row.uid, actor=actor.user, reason=given_reason(request))
        return Response(status=HTTPStatus.NO_CONTENT)

    def _row(self, request: Request, uid: UUID) -> Workload:
        events = Prefetch("events", WorkloadEvent.objects.select_related("other"))
        rows = Workload.objects.select_related("team").prefetch_related("pod_sets", events)
        found = get_object_or_404(visible(rows, actor_of(request)), uid=uid)
        return foresee(found) if request.method == "GET" else found


class AlertsView(CheckedView):
    """``/api/v1/alerts/``: what an admin should look at now, and what no longer holds."""

    permission_classes = (HasScope,)
    parameters = {"GET": ("cleared",)}

    @extend_schema(operation_id="alerts_list", responses={200: results_of(ALERT)})
    def get(self, request: Request) -> Response:
        """Return the alerts that stand; one that names queues is for who sees them all.

        ``?cleared=true``: the last ones that stand no more.
        """
        actor = actor_of(request)
        if truth(request, "cleared"):
            lines = cleared_lines(actor)
        else:
            lines = alert_lines(current_findings(load_platform(clock.now())), actor)
        return Response({"results": [line.as_json() for line in lines]})


class AvailabilityView(CheckedView):
    """``/api/v1/availability/``: what one's queues may take now."""

    permission_classes = (HasScope,)

    @extend_schema(operation_id="availability_list", responses={200: results_of(AVAILABILITY)})
    def get(self, request: Request) -> Response:
        """Return what each visible queue has, holds and could take now, of its own and by loan."""
        return Response({"results": read_availability(actor_of(request))})


class FragmentsView(CheckedView):
    """``/api/v1/fragments/``: how usable free GPUs are, by flavor and kind of GPU."""

    permission_classes = (HasScope,)

    @extend_schema(operation_id="fragments_list", responses={200: results_of(FRAGMENTS)})
    def get(self, request: Request) -> Response:
        """Return what is free, usable and stranded, and the largest gangs that fit now."""
        del request  # what is free is everybody's
        found = [fragment_json(piece) for piece in read_fragments()]
        return Response({"results": found})
