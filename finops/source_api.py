"""REST of sources: what is there of each day, a load, a test, a judgement."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from finops.ingest import configuring, loading, quarantine, testing
from finops.models import Coverage, Fetch, Source
from finops.models.sources import SourceKind
from finops.selectors import sources
from finops.shapes import sources as shapes
from finops.specs import SourceSpec
from gpuplatform.common import clock
from gpuplatform.common.days import DayInput
from gpuplatform.common.known_fields import KnownFields
from gpuplatform.common.money import digits
from gpuplatform.common.paging import CheckedView
from gpuplatform.common.periods import is_day
from gpuplatform.common.rest_shapes import rows_of
from gpuplatform.common.truths import TruthField
from queues.access import HasScope, actor_of, demand_visible, insist
from queues.models import User
from queues.versions import etag, seen_version

DAYS_SHOWN = 31
MOST_DAYS = 400


class SourceSerializer(KnownFields):
    """The shape of a source; what it may be stands in ``finops.source_rules``."""

    kind = serializers.ChoiceField(choices=SourceKind.choices)
    url = serializers.CharField(max_length=500, allow_blank=True, default="")
    cluster = serializers.CharField(max_length=253, allow_blank=True, default="")
    currency = serializers.CharField(max_length=3)
    options = serializers.DictField(default=dict)
    first_day = DayInput(required=False, allow_null=True, default=None)
    enabled = TruthField(default=True)
    reason = serializers.CharField(max_length=500, allow_blank=True, default="")


class ReasonSerializer(serializers.Serializer[Fetch]):
    """Why a reading is accepted or rejected."""

    reason = serializers.CharField(max_length=500)


class SourcesView(CheckedView):
    """All sources."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: rows_of(shapes.SOURCE)}, operation_id="sources_list")
    def get(self, request: Request) -> Response:
        """List the sources with what is there of each, to those who see all bills."""
        demand_visible(actor_of(request).may_see_bills)
        return Response([_source_json(row) for row in sources.source_rows(clock.now())])


class SourceView(CheckedView):
    """One source."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read", "PUT": "admin"}
    versioned = ("PUT",)

    @extend_schema(responses={200: shapes.SOURCE}, operation_id="sources_one")
    def get(self, request: Request, name: str) -> Response:
        """Answer one source; its ETag is what If-Match wants."""
        demand_visible(actor_of(request).may_see_bills)
        return _tagged(_row(name))

    @extend_schema(
        request=SourceSerializer,
        responses={200: shapes.SOURCE, 201: shapes.SOURCE},
        operation_id="sources_set",
    )
    def put(self, request: Request, name: str) -> Response:
        """Let the source be so; one that is there needs If-Match, and a new one has none."""
        actor = actor_of(request)
        insist(actor, "is_admin")
        found = Source.objects.filter(name=name).first()
        seen = seen_version(request, actor, found)
        shape = SourceSerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        fields = dict(shape.validated_data)
        reason = fields.pop("reason")
        spec = SourceSpec(name=name, **fields)
        configuring.save_source(spec, actor.user, reason=reason, if_version=seen)
        return _tagged(_row(name), status.HTTP_200_OK if found else status.HTTP_201_CREATED)


class SourceTestView(CheckedView):
    """A question to a source."""

    permission_classes = (HasScope,)
    scopes = {"POST": "cost:close"}

    @extend_schema(request=None, responses={200: shapes.TEST}, operation_id="sources_test")
    def post(self, request: Request, name: str) -> Response:
        """Ask a source about its last whole hour; nothing is stored."""
        insist(actor_of(request), "may_price")
        result = testing.test_source(_row(name).source)
        return Response(
            {
                "ok": not result.code,
                "code": result.code,
                "sentence": result.sentence,
                "rows": result.rows,
                "measures": _texts(result.measures or {}),
                "notes": result.note_sentences,
                "answers": result.answers,
            }
        )


class SourceDaysView(CheckedView):
    """Days of a source."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}
    parameters = {"GET": ("from", "to")}

    @extend_schema(responses={200: shapes.DAYS}, operation_id="sources_days")
    def get(self, request: Request, name: str) -> Response:
        """Answer the days that were ever tried, by default the last 31, with what is there."""
        demand_visible(actor_of(request).may_see_bills)
        source = _row(name).source
        last = _day_of(request, "to") or clock.now().date()
        first = _day_of(request, "from") or last - timedelta(days=DAYS_SHOWN - 1)
        if not 0 <= (last - first).days < MOST_DAYS:
            words = _("A window has from 1 to {most} days.").format(most=MOST_DAYS)
            raise serializers.ValidationError({"from": [words]})
        return Response([_day_json(one) for one in sources.coverage_rows(source, first, last)])


class SourceDayView(CheckedView):
    """One day of a source."""

    permission_classes = (HasScope,)
    scopes = {"POST": "cost:close"}

    @extend_schema(request=None, responses={200: shapes.FETCH}, operation_id="sources_load")
    def post(self, request: Request, name: str, day: date) -> Response:
        """Load the day now and answer what became of it."""
        insist(actor_of(request), "may_price")
        return Response(_fetch_json(loading.load_day(_row(name).source, day)))


class SourceVerdictView(CheckedView):
    """A judgement on the reading of a day that waits."""

    permission_classes = (HasScope,)
    scopes = {"POST": "cost:close"}

    @extend_schema(
        request=ReasonSerializer, responses={200: shapes.FETCH}, operation_id="sources_judge"
    )
    def post(self, request: Request, name: str, day: date, verdict: str) -> Response:
        """Accept or reject the reading."""
        actor = actor_of(request)
        insist(actor, "may_price")
        judges = {"accept": quarantine.accept_reading, "reject": quarantine.reject_reading}
        if verdict not in judges or not isinstance(actor.user, User):
            raise Http404
        shape = ReasonSerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        source = _row(name).source
        reason = shape.validated_data["reason"]
        return Response(_fetch_json(judges[verdict](source, day, actor.user, reason)))


def _row(name: str) -> sources.SourceRow:
    row = sources.source_row(name, clock.now())
    if row is None:
        raise Http404
    return row


def _day_of(request: Request, parameter: str) -> date | None:
    text = request.query_params.get(parameter)
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or not is_day(day):
        words = _("A day is written like 2026-06-01.")
        raise serializers.ValidationError({parameter: [words]})
    return day


def _tagged(row: sources.SourceRow, code: int = status.HTTP_200_OK) -> Response:
    answer = _source_json(row)
    return Response(answer, code, headers={"ETag": etag(row.source.version, answer)})


def _source_json(row: sources.SourceRow) -> dict[str, Any]:
    source = row.source
    return configuring.describe_source(source) | {
        "version": source.version,
        "last_day": row.last_day,
        "days": {
            "loaded": row.loaded,
            "partial": row.partial,
            "missing": row.missing,
            "waiting": row.waiting,
        },
        "last_error": _fetch_json(row.failure) if row.failure else None,
        "tested_at": source.tested_at,
        "test": {"code": source.test_code, "sentence": source.test_sentence},
    }


def _day_json(coverage: Coverage) -> dict[str, Any]:
    return {
        "day": coverage.day,
        "from": coverage.starts_at,
        "to": coverage.ends_at,
        "state": coverage.state,
        "stored": coverage.stored,
        "ratio": None if coverage.ratio is None else str(coverage.ratio),
        "applied": _fetch_json(coverage.applied) if coverage.applied else None,
        "quarantined": _fetch_json(coverage.quarantined) if coverage.quarantined else None,
        "last": _fetch_json(coverage.last) if coverage.last else None,
    }


def _fetch_json(fetch: Fetch) -> dict[str, Any]:
    return {
        "day": fetch.day,
        "at": fetch.at,
        "outcome": fetch.outcome,
        "code": fetch.code,
        "sentence": fetch.sentence,
        "notes": fetch.note_sentences,
        "rows": fetch.rows,
        "measures": fetch.measures,
        "sha256": fetch.sha256,
    }


def _texts(measures: Mapping[str, Any]) -> dict[str, str]:
    return {name: digits(amount) for name, amount in measures.items()}
