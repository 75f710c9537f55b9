"""REST's doors to what happens in a workload's life: checkpoints, admission checks, answers."""

from http import HTTPStatus
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView, get_object_or_404
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common.paging import PAGES, ByName, CheckedView
from gpuplatform.common.parsers import StrictJSONParser
from gpuplatform.common.yamls import YAMLRenderer, wants_yaml, yaml_answer
from queues.access import SUBMITTERS, HasScope, actor_of, demand, insist, visible
from queues.manifests.export import versioned
from queues.versions import etag, seen_version
from scheduling.checking import delete_check, describe_check, save_check
from scheduling.inputs import CheckAnswerInput, CheckpointInput
from scheduling.manifests.export import manifest_of
from scheduling.models import AdmissionCheck, Workload
from scheduling.serializers import (
    AdmissionCheckInput,
    AdmissionCheckSerializer,
    CheckStateSerializer,
    WorkloadSerializer,
)
from scheduling.switching import answer_check, report_checkpoint
from scheduling.workload_body import read_answer, read_check, read_checkpoint


class CheckpointView(CheckedView):
    """``/api/v1/workloads/<uid>/checkpoint/``: the way to say up to when progress is safe."""

    parser_classes = (StrictJSONParser,)
    permission_classes = (HasScope,)
    scopes = {"POST": "workloads:submit"}

    @extend_schema(request=CheckpointInput, responses=WorkloadSerializer)
    def post(self, request: Request, uid: UUID) -> Response:
        """Note a checkpoint; without an instant, that one was just made."""
        actor = actor_of(request)
        row = get_object_or_404(visible(Workload.objects.all(), actor), uid=uid)
        demand(actor.may_submit(row.team_id), SUBMITTERS)
        saved = report_checkpoint(uid, read_checkpoint(request.data), actor=actor.user)
        return Response(WorkloadSerializer(saved, context={"actor": actor}).data)


class WorkloadCheckView(CheckedView):
    """``/api/v1/workloads/<uid>/checks/<name>/``: the answer to one admission check."""

    parser_classes = (StrictJSONParser,)
    permission_classes = (HasScope,)
    scopes = {"POST": "workloads:admin"}

    @extend_schema(request=CheckAnswerInput, responses=CheckStateSerializer)
    def post(self, request: Request, uid: UUID, name: str) -> Response:
        """Agree, reject, or ask to try again later; for platform admins."""
        actor = actor_of(request)
        get_object_or_404(visible(Workload.objects.all(), actor), uid=uid)
        insist(actor, "may_operate")
        verdict, message, later = read_answer(request.data)
        state = answer_check(
            uid, name, verdict, actor=actor.user, message=message, retry_after_s=later
        )
        return Response(CheckStateSerializer(state).data)


class AdmissionChecksView(CheckedView, ListAPIView[AdmissionCheck]):
    """``/api/v1/admission-checks/``: what work has to pass beside quota and nodes."""

    permission_classes = (HasScope,)
    renderer_classes = (JSONRenderer, YAMLRenderer)
    pagination_class = ByName
    serializer_class = AdmissionCheckSerializer
    parameters = {"GET": PAGES}
    queryset = AdmissionCheck.objects.all()

    def get(  # type: ignore[override]  # a file is no Response
        self, request: Request, *args: object, **kwargs: object
    ) -> HttpResponseBase:
        """Return one page, by name; for those who see the queues of all teams."""
        insist(actor_of(request), "sees_everything")
        if wants_yaml(request):
            rows = self.get_queryset().order_by("name")
            return yaml_answer(request, (manifest_of(describe_check(row)) for row in rows))
        return super().get(request, *args, **kwargs)


class AdmissionCheckView(CheckedView):
    """``/api/v1/admission-checks/<name>/``: one admission check."""

    parser_classes = (StrictJSONParser,)
    renderer_classes = (JSONRenderer, YAMLRenderer)
    permission_classes = (HasScope,)
    scopes = {"PUT": "quota:write", "DELETE": "quota:write"}
    versioned = ("PUT", "DELETE")

    @extend_schema(responses=AdmissionCheckSerializer)
    def get(self, request: Request, name: str) -> HttpResponseBase:
        """Return the check."""
        insist(actor_of(request), "sees_everything")
        row = get_object_or_404(AdmissionCheck.objects.all(), name=name)
        if wants_yaml(request):
            return yaml_answer(request, [versioned(manifest_of(describe_check(row)), row.version)])
        answer = AdmissionCheckSerializer(row).data
        return Response(answer, headers={"ETag": etag(row.version)})

    @extend_schema(
        request=AdmissionCheckInput,
        responses={200: AdmissionCheckSerializer, 201: AdmissionCheckSerializer},
    )
    def put(self, request: Request, name: str) -> Response:
        """Create or change the check."""
        actor = actor_of(request)
        insist(actor, "may_edit_quota")
        found = AdmissionCheck.objects.filter(name=name).first()
        seen = seen_version(request, actor, found)
        row = save_check(read_check(request.data, name), actor=actor.user, if_version=seen)
        code = HTTPStatus.OK if found else HTTPStatus.CREATED
        answer = AdmissionCheckSerializer(row).data
        return Response(answer, code, headers={"ETag": etag(row.version)})

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Delete the check."""
        actor = actor_of(request)
        insist(actor, "may_edit_quota")
        found = get_object_or_404(AdmissionCheck.objects.all(), name=name)
        seen = seen_version(request, actor, found)
        delete_check(name, actor=actor.user, if_version=seen)
        return Response(status=HTTPStatus.NO_CONTENT)
