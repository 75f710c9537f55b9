"""REST of mappings."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from finops import mapping_services
from finops.models.mappings import BillingMode, MappingKind
from finops.selectors import mappings
from finops.shapes import plans
from finops.specs import MappingSpec
from gpuplatform.common import clock
from gpuplatform.common.days import InstantInput
from gpuplatform.common.decimals import AmountInput
from gpuplatform.common.known_fields import KnownFields
from gpuplatform.common.money import digits
from gpuplatform.common.paging import CheckedView, chosen
from queues.access import HasScope, actor_of, demand_visible, insist


class MappingSerializer(KnownFields):
    """The shape of a mapping; what it may be stands in ``finops.mapping_rules``."""

    kind = serializers.ChoiceField(choices=MappingKind.choices)
    value = serializers.CharField(max_length=255)
    team = serializers.CharField(max_length=63, allow_blank=True, default="")
    cluster = serializers.CharField(max_length=253, allow_blank=True, default="")
    key = serializers.CharField(max_length=317, allow_blank=True, default="")
    mode = serializers.ChoiceField(choices=BillingMode.choices, allow_blank=True, default="")
    namespace = serializers.CharField(max_length=253, allow_blank=True, default="")
    tokens_per_second = AmountInput(max_digits=14, decimal_places=4, allow_null=True, default=None)
    gpus = AmountInput(max_digits=10, decimal_places=4, allow_null=True, default=None)
    valid_from = InstantInput(required=False, allow_null=True, default=None)
    valid_to = InstantInput(required=False, allow_null=True, default=None)
    note = serializers.CharField(max_length=500, allow_blank=True, default="")


class EndSerializer(serializers.Serializer[MappingSpec]):
    """When a mapping ends, and why."""

    valid_to = InstantInput(required=False, allow_null=True, default=None)
    reason = serializers.CharField(max_length=500)


class MappingsView(CheckedView):
    """Mappings by kind and thing."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read", "POST": "cost:close"}
    parameters = {"GET": ("kind", "q")}

    @extend_schema(responses={200: plans.MAPPINGS}, operation_id="mappings_list")
    def get(self, request: Request) -> Response:
        """List mappings, newest first of each thing; a lead's are those of the own teams."""
        actor = actor_of(request)
        demand_visible(actor.may_see_prices)
        kind = chosen(request, "kind", MappingKind.values)
        text = request.query_params.get("q", "")
        rows = mappings.mapping_rows(actor, clock.now(), kind=kind, text=text)
        return Response([mapping_json(row) for row in rows])

    @extend_schema(
        request=MappingSerializer,
        responses={201: plans.MAPPING, 200: plans.MAPPING},
        operation_id="mappings_set",
    )
    def post(self, request: Request) -> Response:
        """Bring a mapping into force; the open one ends where it starts. 200: it stood."""
        actor = actor_of(request)
        insist(actor, "may_price")
        shape = MappingSerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        spec = MappingSpec(**shape.validated_data)
        began = clock.now()
        row = mapping_services.set_mapping(spec, actor.user, spec.note)
        code = status.HTTP_200_OK if row.created_at < began else status.HTTP_201_CREATED
        return Response({"id": row.pk, **mapping_services.describe_mapping(row)}, status=code)


class MappingEndView(CheckedView):
    """The end of a mapping."""

    permission_classes = (HasScope,)
    scopes = {"POST": "cost:close"}

    @extend_schema(
        request=EndSerializer, responses={200: plans.MAPPING}, operation_id="mappings_end"
    )
    def post(self, request: Request, pk: int) -> Response:
        """Let a mapping end, by default now."""
        actor = actor_of(request)
        insist(actor, "may_price")
        if mappings.mapping_in_force(pk, clock.now()) is None:
            raise Http404
        shape = EndSerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        ends_at, reason = shape.validated_data["valid_to"], shape.validated_data["reason"]
        row = mapping_services.end_mapping(pk, actor.user, reason, ends_at)
        return Response({"id": row.pk, **mapping_services.describe_mapping(row)})


class UnmatchedView(CheckedView):
    """What costs and belongs to nobody."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: plans.UNMATCHED}, operation_id="mappings_unmatched")
    def get(self, request: Request) -> Response:
        """Answer what the newest bills name nobody for, dearest first."""
        demand_visible(actor_of(request).may_see_bills)
        period = mappings.latest_period()
        return Response(
            {
                "period": period.name if period else None,
                "unmatched": [_unmatched_json(one) for one in mappings.unmatched(period)],
            }
        )


def mapping_json(row: mappings.MappingRow) -> dict[str, Any]:
    """Return a mapping as programs get it."""
    said = mapping_services.describe_mapping(row.mapping)
    return {"id": row.mapping.pk, **said, "state": row.state}


def _unmatched_json(one: mappings.Unmatched) -> dict[str, Any]:
    hours = one.gpu_hours
    return {
        "bucket": one.bucket,
        "kind": one.kind,
        "cluster": one.cluster,
        "value": one.value,
        "amount": digits(one.amount),
        "gpu_hours": None if hours is None else digits(hours),
        "tokens": one.tokens,
    }
