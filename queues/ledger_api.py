"""REST's lists of what was done and what may be used: audit trail, own tokens, priorities."""

from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common.lists import PARAMETERS as LISTS
from gpuplatform.common.lists import CSVRenderer, csv_answer, wants_csv
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.paging import PAGES, CheckedView, NewestFirst
from gpuplatform.common.rest_shapes import TEXT, WHOLE, choice, record, results_of, rows_of, told
from gpuplatform.common.yamls import YAMLRenderer, wants_yaml, yaml_answer
from queues import descriptions, pages
from queues.access import HasScope, actor_of, demand, visible_audit
from queues.choices import SCOPES, PriorityKind
from queues.manifests.export import manifest_of
from queues.models import ApiToken, PriorityClass

PRIORITY_CLASS = record(
    "WorkloadPriorityClass", {"name": TEXT, "value": WHOLE, "description": TEXT}
)
CHUNK = 500  # rows read at once for a file
AUDIT_FILTERS = {
    "actor": "actor_name",
    "action": "action",
    "kind": "subject_kind",
    "subject": "q",  # a part of it
    "team": "team",
}


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    """Who did what to what, when and why; ``before`` and ``after`` are the object's states."""

    actor = serializers.CharField(source="actor_name")
    kind = serializers.CharField(source="subject_kind")
    sealed = serializers.BooleanField(help_text="Whether the chain of the trail vouches for it.")

    class Meta:
        model = AuditEntry
        fields = (
            *("id", "at", "actor", "action", "kind", "subject", "team", "reason"),
            *("before", "after", "request_id", "sealed"),
        )


class NewestEntry(NewestFirst):
    """Pages by time, newest first; of one instant the last written first."""

    ordering: Any = ("-at", "-id")


class AuditView(CheckedView, ListAPIView[AuditEntry]):
    """``/api/v1/audit/``: the audit trail; leads see the entries of their teams."""

    permission_classes = (HasScope,)
    scopes = {"GET": "audit:read"}
    renderer_classes = (JSONRenderer, CSVRenderer)
    pagination_class = NewestEntry
    serializer_class = AuditSerializer
    parameters = {"GET": (*PAGES, *AUDIT_FILTERS)}
    queryset = AuditEntry.objects.all()

    def get_queryset(self) -> QuerySet[AuditEntry]:
        """Return the entries that the actor sees, of the filter."""
        entries = visible_audit(super().get_queryset(), actor_of(self.request))
        given = self.request.query_params
        wanted = {column: given.get(name, "") for name, column in AUDIT_FILTERS.items()}
        return pages.audit_rows(entries, **wanted)

    @extend_schema(
        operation_id="audit_list",
        parameters=[*LISTS, *(OpenApiParameter(name, str) for name in AUDIT_FILTERS)],
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a file is no Response
        """Return one page, newest first, or all entries as a file."""
        actor = actor_of(request)
        demand(actor.may_see_audit or any(actor.leads(team) for team in actor.team_ids))
        if not wants_csv(request):
            return super().get(request, *args, **kwargs)
        rows = self.get_queryset().iterator(chunk_size=CHUNK)
        return csv_answer(request, "audit", (AuditSerializer(row).data for row in rows))


class TokenRowSerializer(serializers.ModelSerializer[ApiToken]):
    """A token of one's own; its secret was shown once."""

    key = serializers.CharField(source="token_key")
    scopes = told(rows_of(choice(SCOPES)))
    team = serializers.SlugRelatedField[Any](slug_field="name", read_only=True, allow_null=True)
    created_at = serializers.DateTimeField(source="created")
    expires_at = serializers.DateTimeField(source="expiry", allow_null=True)

    class Meta:
        model = ApiToken
        fields = ("key", "name", "scopes", "team", "created_at", "expires_at", "last_used_at")


class TokenRowsSerializer(serializers.Serializer[Any]):
    """All tokens of one's own."""

    results = TokenRowSerializer(many=True)


class TokensView(CheckedView):
    """``/api/v1/tokens/``: one's own tokens; they are made on the account page."""

    permission_classes = (HasScope,)

    @extend_schema(operation_id="tokens_list", responses=TokenRowsSerializer)
    def get(self, request: Request) -> Response:
        """Return the tokens, newest first, the expired ones too."""
        rows = ApiToken.objects.filter(user=actor_of(request).user).select_related("team")
        return Response({"results": TokenRowSerializer(rows.order_by("-created"), many=True).data})


class PriorityClassesView(CheckedView):
    """``/api/v1/workload-priority-classes/``: what a workload may name; everybody sees them."""

    permission_classes = (HasScope,)
    renderer_classes = (JSONRenderer, YAMLRenderer)

    @extend_schema(
        operation_id="workload_priority_classes_list", responses={200: results_of(PRIORITY_CLASS)}
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Return the classes, the highest first."""
        rows = PriorityClass.objects.filter(kind=PriorityKind.WORKLOAD).order_by("-value", "name")
        specs = [descriptions.describe_priority_class(row) for row in rows]
        if wants_yaml(request):
            return yaml_answer(request, (manifest_of(spec) for spec in specs))
        found = [
            {"name": spec.name, "value": spec.value, "description": spec.description}
            for spec in specs
        ]
        return Response({"results": found})
