"""REST of shared costs."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from finops import shared_costs
from finops.models import SharedCost
from finops.models.shared_costs import SharingMethod
from finops.shapes import plans
from gpuplatform.common.days import InstantInput
from gpuplatform.common.decimals import AmountInput
from gpuplatform.common.known_fields import KnownFields
from gpuplatform.common.paging import CheckedView
from gpuplatform.common.rest_shapes import rows_of
from queues.access import HasScope, actor_of, demand_visible, insist
from queues.models import User
from queues.versions import etag, seen_version


class SharedCostSerializer(KnownFields):
    """The shape of a shared cost; what it may be stands in ``finops.shared_costs``."""

    method = serializers.ChoiceField(choices=SharingMethod.choices)
    amount = AmountInput(max_digits=14, decimal_places=2, allow_null=True, default=None)
    namespace = serializers.CharField(max_length=253, allow_blank=True, default="")
    cluster = serializers.CharField(max_length=253, allow_blank=True, default="")
    percentages = serializers.DictField(
        child=AmountInput(max_digits=7, decimal_places=4), default=dict
    )
    valid_from = InstantInput(required=False, allow_null=True, default=None)
    valid_to = InstantInput(required=False, allow_null=True, default=None)
    note = serializers.CharField(max_length=500, allow_blank=True, default="")


class SharedCostsView(CheckedView):
    """What all teams carry together."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: rows_of(plans.SHARED_COST)}, operation_id="shared_costs")
    def get(self, request: Request) -> Response:
        """List shared costs, those that have ended too, to those who see all bills."""
        demand_visible(actor_of(request).may_see_bills)
        return Response([_json(row) for row in SharedCost.objects.all()])


class SharedCostView(CheckedView):
    """One shared cost, by name."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read", "PUT": "cost:close", "DELETE": "cost:close"}
    versioned = ("PUT", "DELETE")

    @extend_schema(responses={200: plans.SHARED_COST}, operation_id="shared_cost_one")
    def get(self, request: Request, name: str) -> Response:
        """Answer the one of this name that has no end; its ETag is what If-Match wants."""
        demand_visible(actor_of(request).may_see_bills)
        row = _open(name)
        if row is None:
            raise Http404
        return _tagged(row)

    @extend_schema(
        request=SharedCostSerializer,
        responses={200: plans.SHARED_COST},
        operation_id="shared_cost_set",
    )
    def put(self, request: Request, name: str) -> Response:
        """Bring it into force; the one before it, which needs If-Match, ends where it starts."""
        user = _writer(request)
        seen = seen_version(request, actor_of(request), _open(name))
        shape = SharedCostSerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        spec = shared_costs.SharedSpec(name, **shape.validated_data)
        return _tagged(shared_costs.set_shared_cost(spec, user, if_version=seen))

    @extend_schema(responses={204: None}, operation_id="shared_cost_end")
    def delete(self, request: Request, name: str) -> Response:
        """Let it end now; what was shared until now stays on its bills."""
        user, found = _writer(request), _open(name)
        if found is None:
            raise Http404
        seen = seen_version(request, actor_of(request), found)
        shared_costs.end_shared_cost(name, user, if_version=seen)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _open(name: str) -> SharedCost | None:
    return SharedCost.objects.filter(name=name, valid_to=None).first()


def _json(row: SharedCost) -> dict[str, Any]:
    return {**shared_costs.describe(row), "version": row.pk}


def _tagged(row: SharedCost) -> Response:
    return Response(_json(row), headers={"ETag": etag(row.pk)})


def _writer(request: Request) -> User:
    actor = actor_of(request)
    insist(actor, "may_price")
    assert isinstance(actor.user, User), "HasScope let somebody in"
    return actor.user
