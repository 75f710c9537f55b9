"""REST's answer to a program that asks who it is and what it may do."""

from typing import Any

from django.contrib.auth.models import AbstractUser
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common.paging import CheckedView
from queues.access import Actor, HasScope, actor_of
from queues.models import ApiToken, Team


class TeamRoleSerializer(serializers.Serializer[Any]):
    """A team that one belongs to."""

    name = serializers.CharField()
    role = serializers.CharField(allow_null=True)


class TokenSerializer(serializers.Serializer[Any]):
    """The token that asked; null in a browser."""

    name = serializers.CharField()
    team = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)


class WhoamiSerializer(serializers.Serializer[Any]):
    """Who asks. ``scopes`` null: a browser session, which has all."""

    user = serializers.CharField()
    roles = serializers.ListField(child=serializers.CharField())
    teams = TeamRoleSerializer(many=True)
    scopes = serializers.ListField(child=serializers.CharField(), allow_null=True)
    token = TokenSerializer(allow_null=True)


class WhoamiView(CheckedView):
    """``GET /api/v1/whoami/``."""

    permission_classes = (HasScope,)

    @extend_schema(responses=WhoamiSerializer, operation_id="whoami")
    def get(self, request: Request) -> Response:
        """Return who the caller is: roles, teams, and the limits of the token."""
        actor = actor_of(request)
        assert isinstance(actor.user, AbstractUser)
        scopes = None if actor.scopes is None else sorted(actor.scopes)
        roles = sorted(actor.roles) if actor.token_team is None else []
        answer = {"user": actor.user.get_username(), "roles": roles, "teams": _teams(actor)}
        return Response(answer | {"scopes": scopes, "token": _token(request.auth)})


def _teams(actor: Actor) -> list[dict[str, Any]]:
    held = actor.teams or {}
    rows = Team.objects.filter(pk__in=actor.team_ids).order_by("name")
    return [{"name": row.name, "role": held.get(row.pk)} for row in rows]


def _token(auth: Any) -> dict[str, Any] | None:
    if not isinstance(auth, ApiToken):
        return None
    team = auth.team.name if auth.team else None
    return {"name": auth.name, "team": team, "expires_at": auth.expiry}
