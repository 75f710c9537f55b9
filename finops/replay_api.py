"""REST of replays: ask, follow, read, cancel."""

from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from finops.models import QuotaReplay
from finops.replaying import showing
from finops.replaying.asking import ReplaySpec, ask, cancel
from finops.shapes import plans
from gpuplatform.common.days import DayInput
from gpuplatform.common.decimals import WholeInput
from gpuplatform.common.known_fields import KnownFields
from gpuplatform.common.later import address_of
from gpuplatform.common.paging import CheckedView
from gpuplatform.common.rest_shapes import rows_of
from queues.access import HasScope, actor_of, insist
from queues.models import User
from queues.specs import CellSpec
from scheduling.engine.machines import GPU

MOST = 2**62


class CellSerializer(KnownFields):
    """Another amount in one cell; limits that are left out or null are no limits."""

    queue = serializers.CharField(max_length=253)
    flavor = serializers.CharField(max_length=253)
    resource = serializers.CharField(max_length=317, default=GPU)
    nominal = WholeInput(min_value=0, max_value=MOST)
    borrowing_limit = WholeInput(min_value=0, max_value=MOST, allow_null=True, default=None)
    lending_limit = WholeInput(min_value=0, max_value=MOST, allow_null=True, default=None)


class ReplaySerializer(KnownFields):
    """A question: local days of the billing time zone, the last one included."""

    first_day = DayInput()
    last_day = DayInput()
    cells = CellSerializer(many=True, default=list)
    note = serializers.CharField(max_length=200, allow_blank=True, default="")


class ReplaysView(CheckedView):
    """All replays."""

    permission_classes = (HasScope,)
    scopes = {"GET": "read", "POST": "quota:write"}

    @extend_schema(responses={200: rows_of(plans.REPLAY_ROW)}, operation_id="replays_list")
    def get(self, request: Request) -> Response:
        """List the newest replays, without their results."""
        actor = actor_of(request)
        insist(actor, "sees_everything")
        rows = showing.replay_rows(actor)
        return Response([showing.as_json(row, actor, whole=False) for row in rows])

    @extend_schema(
        request=ReplaySerializer,
        responses={202: plans.REPLAY_ROW},
        operation_id="replays_ask",
    )
    def post(self, request: Request) -> Response:
        """Ask how the work of a window would have fared under other quotas."""
        user = _editor(request)
        shape = ReplaySerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        asked = shape.validated_data
        cells = tuple(CellSpec(**cell) for cell in asked["cells"])
        spec = ReplaySpec(asked["first_day"], asked["last_day"], cells, asked["note"])
        row = ask(spec, actor=user)
        where = {"Location": address_of(row.uid)}
        told = showing.as_json(row, actor_of(request), whole=False)
        return Response(told, status=status.HTTP_202_ACCEPTED, headers=where)


class ReplayView(CheckedView):
    """One replay."""

    permission_classes = (HasScope,)
    scopes = {"GET": "read", "DELETE": "quota:write"}

    @extend_schema(responses={200: plans.REPLAY}, operation_id="replays_one")
    def get(self, request: Request, uid: UUID) -> Response:
        """Answer a replay with its result; money only to those who see all bills."""
        actor = actor_of(request)
        return Response(showing.as_json(_row(request, uid), actor))

    @extend_schema(responses={204: None}, operation_id="replays_cancel")
    def delete(self, request: Request, uid: UUID) -> Response:
        """Cancel a replay; one that is over stays as it is."""
        user = _editor(request)
        _row(request, uid)
        cancel(uid, actor=user)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _editor(request: Request) -> User:
    actor = actor_of(request)
    insist(actor, "may_edit_quota")
    assert isinstance(actor.user, User), "HasScope let somebody in"
    return actor.user


def _row(request: Request, uid: UUID) -> QuotaReplay:
    row = showing.replay_of(actor_of(request), uid)
    if row is None:
        raise Http404
    return row
