"""REST of webhooks: ``/api/v1/webhooks/``. Secrets are answered once, when they are made."""

from typing import Any, ClassVar
from uuid import UUID

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from gpuplatform.common.known_fields import KnownFields
from gpuplatform.common.once import told_once
from gpuplatform.common.paging import PAGES, CheckedView, NewestFirst
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.rest_shapes import TEXT, choice, or_none, record, rows_of, told
from gpuplatform.common.why import PARAMETER as REASON
from gpuplatform.common.why import given_reason
from gpuplatform.doors.models import Delivery, DeliveryState, Webhook
from gpuplatform.doors.webhooks import services
from gpuplatform.doors.webhooks.access import may_tell_anybody, own_webhook, own_webhooks
from gpuplatform.doors.webhooks.events import TYPES
from gpuplatform.doors.webhooks.rules import WebhookSpec
from queues.access import Actor, HasScope, actor_of, demand
from queues.models import Team, User
from queues.versions import etag, seen_version

SCOPE = "webhooks"
SCOPES = dict.fromkeys(("GET", "POST", "PUT", "DELETE"), SCOPE)


class WebhookBodySerializer(KnownFields):
    """The shape of a webhook; what it may be stands in ``doors.webhooks.rules``."""

    name = serializers.CharField(max_length=1_000)
    url = serializers.CharField(max_length=4_000)
    events = serializers.ListField(
        child=serializers.CharField(max_length=100), max_length=len(TYPES) * 2
    )
    is_active = serializers.BooleanField(default=True)


class NewWebhookSerializer(WebhookBodySerializer):
    """A new one also says whose it is; ``team`` null: of the whole platform."""

    team = serializers.CharField(max_length=63, allow_null=True, default=None)


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """A webhook as it stands."""

    team = serializers.SlugRelatedField[Any](slug_field="name", read_only=True, allow_null=True)
    events = told(rows_of(choice(TYPES)))

    class Meta:
        model = Webhook
        fields: ClassVar[tuple[str, ...]] = (
            *("uid", "name", "url", "team", "events", "is_active", "disabled_because"),
            *("failures", "failing_since", "held_until", "since", "created_at", "version"),
        )


class WebhooksSerializer(serializers.Serializer[Any]):
    """All webhooks of one's own."""

    results = WebhookSerializer(many=True)


class WebhookWithSecretSerializer(WebhookSerializer):
    """The same with its secret, this once."""

    secret = serializers.CharField(
        allow_null=True,
        help_text="It is answered this once; null where the request is sent again under its key.",
    )

    class Meta(WebhookSerializer.Meta):
        fields: ClassVar[tuple[str, ...]] = (*WebhookSerializer.Meta.fields, "secret")


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """A line of the log; ``uid`` is the header ``webhook-id``, ``code`` the last HTTP status."""

    state = serializers.ChoiceField(choices=[one.value for one in DeliveryState])
    next_try_at = serializers.SerializerMethodField()

    class Meta:
        model = Delivery
        fields = (
            *("uid", "event", "state", "created_at", "tries", "tried_at", "next_try_at"),
            *("code", "error", "took_ms", "body"),
        )

    def get_next_try_at(self, row: Delivery) -> str | None:
        """Return when it is tried next; null where it is not."""
        return row.due_at.isoformat() if row.state == DeliveryState.WAITING else None


class _View(CheckedView):
    """What all of these share: the scope, and that strangers get 403."""

    permission_classes = (HasScope,)
    scopes = SCOPES

    def actor(self) -> Actor:
        """Return who asks, if they may set up any webhook."""
        actor = actor_of(self.request)
        demand(may_tell_anybody(actor))
        return actor

    def hook(self, uid: UUID) -> Webhook:
        """Return a webhook of theirs."""
        return own_webhook(self.actor(), uid)

    def user(self) -> User | None:
        """Return the person, for the audit trail."""
        return actor_of(self.request).user


class WebhooksView(_View):
    """One's own webhooks, and new ones."""

    parameters = {"POST": ("reason",)}

    @extend_schema(operation_id="webhooks_list", responses=WebhooksSerializer)
    def get(self, request: Request) -> Response:  # noqa: ARG002
        """Return the webhooks that the caller may change, by name; there are few."""
        rows = own_webhooks(self.actor())
        return Response({"results": WebhookSerializer(rows, many=True).data})

    @extend_schema(
        operation_id="webhooks_create",
        request=NewWebhookSerializer,
        responses={201: WebhookWithSecretSerializer},
        parameters=[REASON],
    )
    def post(self, request: Request) -> Response:
        """Set up a webhook; the answer has its secret, this once."""
        actor, shape = self.actor(), NewWebhookSerializer(data=request.data)
        shape.is_valid(raise_exception=True)
        fields = dict(shape.validated_data)
        team = self._team(actor, fields.pop("team"))
        spec = WebhookSpec(**fields, team=team)
        hook, secret = services.create_webhook(spec, actor.user, given_reason(request))
        where = reverse("api-webhook", [hook.pk], request=request)
        body = WebhookSerializer(hook).data | {"secret": secret}
        made = Response(body, status.HTTP_201_CREATED, headers={"Location": where})
        return told_once(made, "secret")

    def _team(self, actor: Actor, name: str | None) -> Team | None:
        team = Team.objects.filter(name=name).first() if name is not None else None
        if name is not None and (team is None or not actor.sees_team(team.pk)):
            raise Rejected([Problem("team", "unknown_team", _("there is no such team"))])
        demand(actor.may_tell_of(team.pk if team else None))
        return team


class WebhookView(_View):
    """One webhook."""

    parameters = {"PUT": ("reason",), "DELETE": ("reason",)}
    versioned = ("PUT", "DELETE")

    @extend_schema(operation_id="webhooks_one", responses=WebhookSerializer)
    def get(self, request: Request, uid: UUID) -> Response:  # noqa: ARG002
        """Return it, without its secret; its ETag is what If-Match wants."""
        return _tagged(self.hook(uid))

    @extend_schema(
        operation_id="webhooks_set",
        request=WebhookBodySerializer,
        responses=WebhookSerializer,
        parameters=[REASON],
    )
    def put(self, request: Request, uid: UUID) -> Response:
        """Let it be so; its team and its secret stay."""
        hook, shape = self.hook(uid), WebhookBodySerializer(data=request.data)
        seen = seen_version(request, self.actor(), hook)
        shape.is_valid(raise_exception=True)
        spec = WebhookSpec(**shape.validated_data, team=hook.team)
        services.change_webhook(hook, spec, self.user(), given_reason(request), seen)
        return _tagged(hook)

    @extend_schema(operation_id="webhooks_delete", responses={204: None}, parameters=[REASON])
    def delete(self, request: Request, uid: UUID) -> Response:
        """Forget it with its log."""
        hook = self.hook(uid)
        seen = seen_version(request, self.actor(), hook)
        services.delete_webhook(hook, self.user(), given_reason(request), seen)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _tagged(hook: Webhook) -> Response:
    answer = WebhookSerializer(hook).data
    return Response(answer, headers={"ETag": etag(hook.version, answer)})


class NewestDelivery(NewestFirst):
    """Pages by number, newest first."""

    ordering: Any = ("-id",)


class DeliveriesView(_View, ListAPIView[Delivery]):
    """The log of a webhook."""

    pagination_class = NewestDelivery
    serializer_class = DeliverySerializer
    parameters = {"GET": PAGES}
    queryset = Delivery.objects.all()

    def get_queryset(self) -> Any:
        """Return the deliveries of the webhook."""
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset()
        return super().get_queryset().filter(webhook=self.hook(self.kwargs["uid"]))

    @extend_schema(operation_id="webhooks_deliveries")
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return a page of it, newest first."""
        return super().get(request, *args, **kwargs)


class AgainView(_View):
    """The way to send a delivery once more."""

    scopes = {"POST": SCOPE}

    @extend_schema(
        operation_id="webhooks_again", request=None, responses={202: DeliverySerializer}
    )
    def post(self, request: Request, uid: UUID, delivery: UUID) -> Response:  # noqa: ARG002
        """Let it be sent again, under the same id."""
        row = Delivery.objects.filter(webhook=self.hook(uid), uid=delivery).first()
        if row is None:
            raise Http404
        again = services.send_again(row, self.user())
        return Response(DeliverySerializer(again).data, status.HTTP_202_ACCEPTED)


class TestView(_View):
    """The way to see whether a webhook works."""

    scopes = {"POST": SCOPE}

    @extend_schema(operation_id="webhooks_test", request=None, responses={202: DeliverySerializer})
    def post(self, request: Request, uid: UUID) -> Response:  # noqa: ARG002
        """Let it be told of nothing (``ping``); the log says what came of it."""
        row = services.ping(self.hook(uid), self.user())
        return Response(DeliverySerializer(row).data, status.HTTP_202_ACCEPTED)


class SecretView(_View):
    """The way to another secret."""

    scopes = {"POST": SCOPE}
    parameters = {"POST": ("reason",)}

    @extend_schema(
        operation_id="webhooks_secret",
        request=None,
        responses={200: record("WebhookSecret", {"secret": or_none(TEXT)})},
        parameters=[REASON],
    )
    def post(self, request: Request, uid: UUID) -> Response:
        """Make another secret and answer it, this once; the old one signs nothing any more."""
        secret = services.rotate_secret(self.hook(uid), self.user(), given_reason(request))
        return told_once(Response({"secret": secret}), "secret")
