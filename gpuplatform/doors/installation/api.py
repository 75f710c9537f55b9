"""REST of settings: ``GET /api/v1/settings/``, for admins, read only."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common import clock
from gpuplatform.common.paging import CheckedView
from gpuplatform.common.rest_shapes import NUMBERS_TOLD, told
from gpuplatform.doors.installation.parts import BAD, GOOD, WARN
from gpuplatform.doors.installation.report import as_plain, installation
from gpuplatform.doors.installation.values import DEFAULT, ENVIRONMENT
from queues.access import HasScope, actor_of, demand


class SettingSerializer(serializers.Serializer[object]):
    """A variable of the environment; a secret's value is ``set`` or ``not set``."""

    name = serializers.CharField()
    value = serializers.CharField(help_text="As one would write it; `unset` where there is none.")
    origin = serializers.ChoiceField(choices=[ENVIRONMENT, DEFAULT])
    default = serializers.CharField()
    unit = serializers.CharField()
    is_secret = serializers.BooleanField()
    meaning = serializers.CharField()


class PartSerializer(serializers.Serializer[object]):
    """A part of the installation, and what is known of it."""

    name = serializers.CharField()
    state = serializers.ChoiceField(choices=[GOOD, WARN, BAD])
    facts = told(NUMBERS_TOLD)


class SourceStandSerializer(serializers.Serializer[object]):
    """A source of cost and usage; ``test_code`` "" went well."""

    name = serializers.CharField()
    kind = serializers.CharField()
    enabled = serializers.BooleanField()
    tested_at = serializers.DateTimeField(allow_null=True)
    test_code = serializers.CharField()
    last_success_at = serializers.DateTimeField(allow_null=True)


class InstallationSerializer(serializers.Serializer[object]):
    """What is set and how the parts are."""

    settings = SettingSerializer(many=True)
    source_secrets = serializers.DictField(child=serializers.CharField())
    sources = SourceStandSerializer(many=True)
    month = serializers.CharField()
    idle_policy = serializers.CharField(allow_null=True)
    parts = PartSerializer(many=True)
    timetable = serializers.DictField(child=serializers.FloatField())


class SettingsView(CheckedView):
    """What is set for this installation; changed nowhere over REST."""

    permission_classes = (HasScope,)
    scopes: ClassVar[dict[str, str]] = {"GET": "admin"}

    @extend_schema(responses=InstallationSerializer, tags=["settings"])
    def get(self, request: Request) -> Response:
        """Return settings with their origin, and the health of the parts."""
        demand(actor_of(request).is_admin)
        return Response(as_plain(installation(clock.now())))
