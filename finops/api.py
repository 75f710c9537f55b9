"""REST of money: prices in and out, bills out. Figures are those of the pages."""

from typing import cast

from django.conf import settings
from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from finops import exports, services
from finops.files.answers import XLSX, Asked, file_answer
from finops.models.prices import PriceUnit
from finops.selectors import bills, prices
from finops.shapes import bills as shapes
from finops.specs import PriceSpec
from gpuplatform.common import clock
from gpuplatform.common.days import InstantInput
from gpuplatform.common.decimals import AmountInput
from gpuplatform.common.known_fields import KnownFields
from gpuplatform.common.paging import CheckedView, chosen
from queues.access import HasScope, actor_of, demand_visible, insist


class PriceSerializer(KnownFields):
    """The shape of a price; what it may be stands in ``finops.rules``."""

    unit = serializers.ChoiceField(choices=PriceUnit.choices)
    subject = serializers.CharField(max_length=253)
    amount = AmountInput(max_digits=18, decimal_places=8, min_value=0)
    currency = serializers.CharField(max_length=3, default=lambda: settings.CURRENCY)
    valid_from = InstantInput(required=False, allow_null=True)
    valid_to = InstantInput(required=False, allow_null=True)
    source = serializers.CharField(  # type: ignore[assignment]  # a field of that name, not DRF's
        max_length=64, default="declared"
    )
    note = serializers.CharField(allow_blank=True, default="", max_length=500)


class PricesView(CheckedView):
    """Prices by unit and subject."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read", "POST": "cost:close"}
    parameters = {"GET": ("unit", "subject")}

    @extend_schema(responses=PriceSerializer(many=True), operation_id="prices_list")
    def get(self, request: Request) -> Response:
        """List all prices, newest first within unit and subject, to those who see bills."""
        demand_visible(actor_of(request).may_see_prices)
        unit = chosen(request, "unit", PriceUnit.values)
        subject = request.query_params.get("subject")
        rows = prices.price_rows(clock.now(), unit=unit, subject=subject or "")
        return Response([PriceSerializer(row.price).data for row in rows])

    @extend_schema(request=PriceSerializer, responses={201: PriceSerializer, 200: PriceSerializer})
    def post(self, request: Request) -> Response:
        """Set a price; the one in force ends where it starts. 200: it is in force already."""
        actor = actor_of(request)
        insist(actor, "may_price")
        shape = PriceSerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        spec = PriceSpec(**shape.validated_data)
        began = clock.now()
        price = services.set_price(spec, actor.user, spec.note)
        stood = price.created_at < began
        code = status.HTTP_200_OK if stood else status.HTTP_201_CREATED
        return Response(PriceSerializer(price).data, status=code)


class BillMonthView(CheckedView):
    """The bills of a month."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: shapes.BILLS}, operation_id="bills_month")
    def get(self, request: Request, month: str) -> Response:
        """Answer the bills of the month that the caller may see, and their sums."""
        view = bills.bill_month(actor_of(request), month)
        if view is None:
            raise Http404
        return Response(exports.month_json(view))


class BillView(CheckedView):
    """One bill."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: shapes.BILL}, operation_id="bills_team")
    def get(self, request: Request, month: str, scope: str) -> Response:
        """Answer a team's bill with its lines."""
        view = bills.team_bill(actor_of(request), month, scope)
        if view is None:
            raise Http404
        return Response(exports.bill_json(view))


# csv and focus, manifest, xlsx, zip, pdf.
FILES = {
    (200, "text/csv"): OpenApiTypes.STR,
    (200, "application/json"): shapes.MANIFEST,
    (200, XLSX): OpenApiTypes.BINARY,
    (200, "application/zip"): OpenApiTypes.BINARY,
    (200, "application/pdf"): OpenApiTypes.BINARY,
}


class BillFileView(CheckedView):
    """Bills as a file."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}
    parameters = {"GET": ("profile",)}
    later = ("GET",)
    refusals = {"GET": (status.HTTP_422_UNPROCESSABLE_ENTITY,)}

    @extend_schema(
        responses=FILES,
        operation_id="bills_file",
        parameters=[OpenApiParameter("profile", str)],
    )
    def get(self, request: Request, month: str, kind: str, scope: str = "") -> HttpResponse:
        """Answer csv, focus, xlsx, manifest, zip or pdf of a month, or of one bill of it.

        ``profile``: machine, excel-es or excel-de of csv; 1.2 or 1.4 of focus.
        """
        profile = request.query_params.get("profile", "")
        asked = Asked(month, scope, kind, profile)
        answer = file_answer(request._request, actor_of(request), asked)  # noqa: SLF001
        return cast("HttpResponse", answer)


class TeamBillFileView(BillFileView):
    """One bill as a file."""

    @extend_schema(
        responses=FILES,
        operation_id="bills_team_file",
        parameters=[OpenApiParameter("profile", str)],
    )
    def get(self, request: Request, month: str, kind: str, scope: str = "") -> HttpResponse:
        """Answer the file of one bill."""
        return super().get(request, month, kind, scope)
