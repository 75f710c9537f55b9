"""REST of budgets."""

from decimal import Decimal
from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from finops.budgets import limits
from finops.budgets.saving import BudgetSpec, delete_budget, save_budget
from finops.models import Budget
from finops.models.budgets import BudgetMeasure, BudgetScope, usual_thresholds
from finops.selectors.bills import may_see_bills
from finops.selectors.budgets import BudgetRow, budget_cells, budget_rows
from finops.shapes import plans
from gpuplatform.common.days import DayInput
from gpuplatform.common.decimals import AmountInput, WholeInput
from gpuplatform.common.known_fields import KnownFields
from gpuplatform.common.money import digits
from gpuplatform.common.paging import CheckedView
from gpuplatform.common.rest_shapes import rows_of
from gpuplatform.common.truths import TruthField
from gpuplatform.common.why import PARAMETER as REASON
from gpuplatform.common.why import given_reason
from queues.access import HasScope, actor_of, demand_visible, insist
from queues.models import User
from queues.versions import etag, seen_version


class BudgetSerializer(KnownFields):
    """The shape of a budget; what it may be stands in ``finops.budgets.saving``."""

    scope = serializers.ChoiceField(choices=BudgetScope.choices)
    subject = serializers.CharField(max_length=255)
    measure = serializers.ChoiceField(choices=BudgetMeasure.choices)
    limit = AmountInput(max_digits=20, decimal_places=6, min_value=0)
    duration = serializers.CharField(max_length=16, default="1mo")
    is_hard = TruthField(default=False)
    thresholds = serializers.ListField(child=WholeInput(), default=usual_thresholds, max_length=8)
    first_day = DayInput(required=False, allow_null=True, default=None)
    note = serializers.CharField(max_length=500, allow_blank=True, default="")
    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class BudgetsView(CheckedView):
    """All budgets."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: rows_of(plans.BUDGET)}, operation_id="budgets_list")
    def get(self, request: Request) -> Response:
        """List the budgets that the caller may see, with what is spent of each."""
        actor = actor_of(request)
        demand_visible(may_see_bills(actor))
        return Response([_json(row) for row in budget_rows(actor)])


class BudgetView(CheckedView):
    """One budget."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read", "PUT": "cost:close", "DELETE": "cost:close"}
    parameters = {"DELETE": ("reason",)}
    versioned = ("PUT", "DELETE")

    @extend_schema(responses={200: plans.BUDGET}, operation_id="budgets_one")
    def get(self, request: Request, name: str) -> Response:
        """Answer a budget; its ETag is what If-Match wants."""
        return _tagged(_row(request, name))

    @extend_schema(
        request=BudgetSerializer,
        responses={200: plans.BUDGET, 201: plans.BUDGET},
        operation_id="budgets_set",
    )
    def put(self, request: Request, name: str) -> Response:
        """Let the budget be so; one that is there needs If-Match, and a new one has none."""
        user = _writer(request)
        found = Budget.objects.filter(name=name).first()
        seen = seen_version(request, actor_of(request), found)
        shape = BudgetSerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        fields = dict(shape.validated_data)
        reason, thresholds = fields.pop("reason"), tuple(fields.pop("thresholds"))
        save_budget(BudgetSpec(name, **fields, thresholds=thresholds), user, reason, seen)
        code = status.HTTP_200_OK if found else status.HTTP_201_CREATED
        return _tagged(_row(request, name), code)

    @extend_schema(responses={204: None}, operation_id="budgets_delete", parameters=[REASON])
    def delete(self, request: Request, name: str) -> Response:
        """Take the budget away; If-Match says which one was seen."""
        user = _writer(request)
        found = get_object_or_404(Budget.objects.all(), name=name)
        seen = seen_version(request, actor_of(request), found)
        if not delete_budget(name, user, given_reason(request), seen):
            raise Http404
        return Response(status=status.HTTP_204_NO_CONTENT)


class LimitsView(CheckedView):
    """LiteLLM's own limits beside our budgets."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read", "POST": "cost:close"}

    @extend_schema(responses={200: rows_of(plans.LIMIT)}, operation_id="litellm_limits")
    def get(self, request: Request) -> Response:
        """List the limits that the caller may see, each with the budget that it should match."""
        actor = actor_of(request)
        demand_visible(may_see_bills(actor))
        return Response([_limit(row) for row in limits.compared_limits(actor)])

    @extend_schema(
        request=None, responses={200: plans.GATEWAYS}, operation_id="litellm_limits_read"
    )
    def post(self, request: Request) -> Response:
        """Ask all gateways for their limits now, and answer of how many teams each told."""
        _writer(request)
        told = limits.read_gateways()
        demand_visible(bool(told))
        return Response(told)


class LimitPushSerializer(serializers.Serializer[Budget]):
    """Whether a push is only shown, and why it is wanted."""

    dry_run = TruthField(default=False)
    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class LimitPushView(CheckedView):
    """The way to let LiteLLM limit a team as our budget does."""

    permission_classes = (HasScope,)
    scopes = {"POST": "cost:close"}

    @extend_schema(
        request=LimitPushSerializer,
        responses={200: plans.PUSHED},
        operation_id="litellm_limits_push",
    )
    def post(self, request: Request, pk: int) -> Response:
        """Send the budget's limit to LiteLLM, or with ``dry_run`` answer what would be sent."""
        user = _writer(request)
        shape = LimitPushSerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        rows = limits.compared_limits(actor_of(request))
        row = next((one for one in rows if one.limit.pk == pk), None)
        if row is None:
            raise Http404
        if shape.validated_data["dry_run"]:
            sent = limits.written(row.order) if row.order else None
            return Response({"dry_run": True, "sent": sent, "limit": _limit(row)})
        after = limits.push_limit(pk, user, shape.validated_data["reason"])
        return Response({"dry_run": False, "limit": _limit(after)})


def _limit(row: limits.Compared) -> dict[str, Any]:
    cells = limits.limit_cells(row)
    amounts = {k: digits(v) for k, v in cells.items() if isinstance(v, Decimal)}
    return {"id": row.limit.pk, **cells, **amounts}


def _writer(request: Request) -> User:
    actor = actor_of(request)
    insist(actor, "may_price")
    assert isinstance(actor.user, User), "HasScope let somebody in"
    return actor.user


def _row(request: Request, name: str) -> BudgetRow:
    actor = actor_of(request)
    rows = budget_rows(actor, name) if may_see_bills(actor) else []
    if not rows:
        raise Http404
    return rows[0]


def _tagged(row: BudgetRow, code: int = status.HTTP_200_OK) -> Response:
    answer = _json(row)
    return Response(answer, code, headers={"ETag": etag(row.budget.version, answer)})


def _json(row: BudgetRow) -> dict[str, Any]:
    cells = budget_cells(row)
    money = ("limit", "spent", "expected", "low", "high", "percent")
    texts = {name: None if cells[name] is None else digits(cells[name]) for name in money}
    return {
        **cells,
        **texts,
        "thresholds": row.budget.thresholds,
        "first_day": row.budget.first_day,
        "version": row.budget.version,
        "note": row.budget.note,
    }
