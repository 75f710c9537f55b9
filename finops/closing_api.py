"""REST of months: where each stands, its steps, acknowledgements, adjustments, its summary."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from finops import billing, choosing
from finops.closing import adjusting, steps
from finops.closing_json import board_json, plain_cells, summary_json
from finops.models import BillingPeriod
from finops.selectors.board import Board, close_board
from finops.selectors.reconciliation import check_cells, reconciliation
from finops.selectors.summary import month_summary
from finops.shapes import months
from gpuplatform.common.decimals import AmountInput
from gpuplatform.common.known_fields import KnownFields
from gpuplatform.common.paging import CheckedView
from queues.access import Actor, HasScope, actor_of, demand_visible, insist
from queues.models import User
from queues.versions import etag, seen_version

REASON_LENGTH = 500


class StepSerializer(KnownFields):
    """Why, and the hash of the lines that were seen."""

    reason = serializers.CharField(max_length=500, allow_blank=True, default="")
    seen = serializers.CharField(max_length=64, allow_blank=True, default="")


class AcknowledgementSerializer(KnownFields):
    """A finding by its name, and why it may stay as it is."""

    code = serializers.CharField(max_length=48)
    subject = serializers.CharField(max_length=255, allow_blank=True, default="")
    reason = serializers.CharField(max_length=500)


class AdjustmentSerializer(KnownFields):
    """A line by hand; team "" is the central account."""

    team = serializers.CharField(max_length=63, allow_blank=True, default="")
    amount = AmountInput(max_digits=14, decimal_places=2)
    original = serializers.CharField(max_length=7, allow_blank=True, default="")
    original_line = serializers.CharField(max_length=255, allow_blank=True, default="")
    reason = serializers.CharField(max_length=500)


POLICY = {
    "application/json": {
        "type": "object",
        "description": "Choices by name, numbers as texts; those that are left out stay.",
        "additionalProperties": {"type": "string", "maxLength": REASON_LENGTH},
    }
}


class PolicyView(CheckedView):
    """The rules of a month."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read", "PATCH": "cost:close"}
    versioned = ("PATCH",)

    @extend_schema(responses={200: months.POLICY}, operation_id="period_policy")
    def get(self, request: Request, month: str) -> Response:
        """Answer every choice of the month, defaults included, and the words that each takes.

        Its ETag is what If-Match wants.
        """
        demand_visible(actor_of(request).may_see_bills)
        period = BillingPeriod.objects.filter(name=month).first()
        if period is None:
            raise Http404
        return _policy(period)

    @extend_schema(request=POLICY, responses={200: months.POLICY}, operation_id="period_choose")
    def patch(self, request: Request, month: str) -> Response:
        """Set some choices of an open month, beside an optional ``reason``; bills follow."""
        actor = actor_of(request)
        insist(actor, "may_price")
        found = BillingPeriod.objects.filter(name=month).first()
        seen = seen_version(request, actor, found)
        wanted = _wanted(request.data)
        reason = wanted.pop("reason", "")
        first = 1  # of a month that this makes
        version = first if found is None else seen
        return _policy(choosing.choose(month, wanted, _user(actor), reason, version))


def _policy(period: BillingPeriod) -> Response:
    body = {"policy": choosing.choices_of(period), "words": choosing.WORDS}
    version = period.policy_version
    return Response(body | {"version": version}, headers={"ETag": etag(version)})


def _wanted(body: Any) -> dict[str, str]:
    """Return what is asked for, numbers as texts.

    Raises:
        ValidationError: it is no mapping of words and numbers.
    """
    shape = serializers.DictField(child=serializers.CharField(max_length=REASON_LENGTH))
    return dict(shape.run_validation(body))


def _user(actor: Actor) -> User:
    assert isinstance(actor.user, User), "HasScope let somebody in"
    return actor.user


class PeriodsView(CheckedView):
    """The months that have bills."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: months.PERIODS}, operation_id="periods_list")
    def get(self, request: Request) -> Response:
        """List the months and where each stands, newest first, to those who see all bills."""
        demand_visible(actor_of(request).may_see_bills)
        rows = BillingPeriod.objects.values_list("name", "status", "currency")
        names = ("period", "status", "currency")
        return Response([dict(zip(names, row, strict=True)) for row in rows])


class PeriodView(CheckedView):
    """The close board of a month."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: months.BOARD}, operation_id="periods_one")
    def get(self, request: Request, month: str) -> Response:
        """Answer where the month stands, what is in the way, who did what."""
        return Response(board_json(_board(request, month)))


class PeriodSummaryView(CheckedView):
    """The summary of a month."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: months.SUMMARY}, operation_id="periods_summary")
    def get(self, request: Request, month: str) -> Response:
        """Answer one row per team that the caller may see, and their sums."""
        view = month_summary(actor_of(request), month)
        if view is None:
            raise Http404
        return Response(summary_json(view))


class DriftView(CheckedView):
    """The eight checks of a month."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: months.CHECKS}, operation_id="drift_month")
    def get(self, request: Request, month: str) -> Response:
        """Answer what the planes say of the month and where they differ."""
        period = BillingPeriod.objects.filter(name=month).first()
        found = reconciliation(actor_of(request), period)
        if found is None:
            raise Http404
        return Response([plain_cells(check_cells(found.period, row)) for row in found.rows])


class PeriodRebuildView(CheckedView):
    """The way to bills that are made anew."""

    permission_classes = (HasScope,)
    scopes = {"POST": "cost:close"}
    later = ("POST",)
    always_later = True

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse before anything is kept."""
        super().initial(request, *args, **kwargs)
        insist(actor_of(request), "may_price")

    @extend_schema(request=None, responses={}, operation_id="periods_rebuild")
    def post(self, request: Request, month: str) -> Response:
        """Make the bills of an open month anew from metering and prices, as an operation.

        Its result is the close board of the month.
        """
        billing.rebuild_draft(month)
        return Response(board_json(_board(request, month)))


class PeriodStepView(CheckedView):
    """A step of a month."""

    permission_classes = (HasScope,)
    scopes = {"POST": "cost:close"}
    later = ("POST",)

    @extend_schema(
        request=StepSerializer, responses={200: months.BOARD}, operation_id="periods_step"
    )
    def post(self, request: Request, month: str, step: str) -> Response:
        """Take the step; closing a closed month changes nothing."""
        user = _closer(request, month)
        body = _body(StepSerializer, request)
        steps.take_step(month, steps.Asked(step, user, body["reason"], body["seen"]))
        return Response(board_json(_board(request, month)))


class AcknowledgementsView(CheckedView):
    """What is let pass."""

    permission_classes = (HasScope,)
    scopes = {"POST": "cost:close"}

    @extend_schema(
        request=AcknowledgementSerializer,
        responses={201: months.BOARD},
        operation_id="periods_acknowledge",
    )
    def post(self, request: Request, month: str) -> Response:
        """Let a finding not stand in the way of closing."""
        user = _closer(request, month)
        body = _body(AcknowledgementSerializer, request)
        steps.acknowledge(month, body["code"], body["subject"], user, body["reason"])
        return Response(board_json(_board(request, month)), status=status.HTTP_201_CREATED)


class AdjustmentsView(CheckedView):
    """Adjustments by hand."""

    permission_classes = (HasScope,)
    scopes = {"POST": "cost:close"}

    @extend_schema(
        request=AdjustmentSerializer,
        responses={201: months.BOARD},
        operation_id="periods_adjust",
    )
    def post(self, request: Request, month: str) -> Response:
        """Add a line to a month that is still a draft."""
        user = _closer(request, month)
        spec = adjusting.AdjustmentSpec(**_body(AdjustmentSerializer, request))
        adjusting.adjust(month, spec, user)
        return Response(board_json(_board(request, month)), status=status.HTTP_201_CREATED)


class AdjustmentView(CheckedView):
    """An adjustment by hand."""

    permission_classes = (HasScope,)
    scopes = {"DELETE": "cost:close"}

    @extend_schema(responses={200: months.BOARD}, operation_id="periods_take_back")
    def delete(self, request: Request, month: str, pk: int) -> Response:
        """Take it out of a month that is still a draft."""
        user = _closer(request, month)
        adjusting.take_back(month, pk, user)
        return Response(board_json(_board(request, month)))


def _body(shape: type[KnownFields], request: Request) -> dict[str, Any]:
    found = shape(data=request.data)
    found.is_valid(raise_exception=True)
    return dict(found.validated_data)


def _board(request: Request, month: str) -> Board:
    view = close_board(actor_of(request), month)
    if view is None:
        raise Http404
    return view


def _closer(request: Request, month: str) -> User:
    _board(request, month)
    actor = actor_of(request)
    insist(actor, "may_price")
    assert isinstance(actor.user, User), "HasScope let somebody in"
    return actor.user
