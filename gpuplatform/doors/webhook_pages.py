"""Pages of webhooks: the list, one with its log, and the forms that change them."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpuplatform.common import clock
from gpuplatform.common.problems import Rejected
from gpuplatform.doors.models import Delivery, Webhook
from gpuplatform.doors.webhooks import services
from gpuplatform.doors.webhooks.access import (
    may_tell_anybody,
    own_webhook,
    own_webhooks,
    tellable_teams,
)
from gpuplatform.doors.webhooks.events import TYPES
from gpuplatform.doors.webhooks.rules import NAME_LENGTH, URL_LENGTH, WebhookSpec
from queues.access import Actor, actor_of, demand, require
from queues.forms import add_problems
from queues.models import Team

PER_PAGE, REFUSED = 50, 422


class WebhookForm(forms.Form):
    """A webhook; whose it is is chosen once."""

    name = forms.CharField(
        label=_("Name"), max_length=NAME_LENGTH, help_text=_("What listens there: chat, pager.")
    )
    url = forms.CharField(
        label=_("Address"),
        max_length=URL_LENGTH,
        help_text=_("https://..., where the events are posted to."),
    )
    team = forms.ChoiceField(label=_("Tells of"), required=False)
    events = forms.MultipleChoiceField(
        label=_("Events"), choices=list(TYPES.items()), widget=forms.CheckboxSelectMultiple
    )
    is_active = forms.BooleanField(label=_("Switched on"), required=False, initial=True)
    reason = forms.CharField(label=_("Reason"), max_length=500, required=False)

    def __init__(self, actor: Actor, standing: Webhook | None = None, data: Any = None) -> None:
        initial = {}
        if standing:
            names = ("name", "url", "events", "is_active")
            initial = {name: getattr(standing, name) for name in names}
        super().__init__(data, initial=initial)
        if standing:
            del self.fields["team"]
            return
        del self.fields["is_active"]
        offered = self.fields["team"]
        assert isinstance(offered, forms.ChoiceField)
        everything = [("", gettext("the whole platform"))] if actor.may_tell_all else []
        offered.choices = everything + [(team.name, str(team)) for team in tellable_teams(actor)]

    def spec(self, team: Team | None) -> WebhookSpec:
        """Return what was typed."""
        data = self.cleaned_data
        is_active = data.get("is_active", True)
        return WebhookSpec(data["name"], data["url"], data["events"], team, is_active)


@require_safe
@require(may_tell_anybody)
def webhooks_page(request: HttpRequest) -> HttpResponse:
    """Show the webhooks that the reader may change."""
    rows = list(own_webhooks(actor_of(request)))
    return render(request, "doors/webhooks.html", {"hooks": rows, "now": clock.now()})


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@require(may_tell_anybody)
def webhook_new(request: HttpRequest) -> HttpResponse:
    """Set up a webhook, and show its secret this once."""
    actor = actor_of(request)
    form = WebhookForm(actor, data=request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        name = form.cleaned_data["team"]
        team = tellable_teams(actor).get(name=name) if name else None
        demand(actor.may_tell_of(team.pk if team else None))
        try:
            hook, secret = services.create_webhook(
                form.spec(team), actor.user, form.cleaned_data["reason"]
            )
        except Rejected as error:
            add_problems(form, error.problems)
        else:
            return _show_secret(request, hook, secret)
    return _form_page(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@require(may_tell_anybody)
def webhook_edit(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Change a webhook, or switch it on or off."""
    actor = actor_of(request)
    hook = own_webhook(actor, uid)
    form = WebhookForm(actor, hook, request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            services.change_webhook(
                hook, form.spec(hook.team), actor.user, form.cleaned_data["reason"]
            )
        except Rejected as error:
            add_problems(form, error.problems)
        else:
            return redirect("webhook", uid=uid)
    return _form_page(request, form, hook)


def _form_page(request: HttpRequest, form: WebhookForm, hook: Webhook | None) -> HttpResponse:
    status = REFUSED if form.is_bound else 200
    return render(request, "doors/webhook_form.html", {"form": form, "hook": hook}, status=status)


@require_safe
@require(may_tell_anybody)
def webhook_page(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show one webhook and its log."""
    hook = own_webhook(actor_of(request), uid)
    page = Paginator(hook.deliveries.order_by("-id"), PER_PAGE).get_page(request.GET.get("page"))
    wanted = [(name, TYPES[name]) for name in TYPES if name in hook.events]
    context = {"hook": hook, "page": page, "wanted": wanted, "now": clock.now()}
    return render(request, "doors/webhook.html", context)


@require_POST
@require(may_tell_anybody)
def webhook_test(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Let a webhook be told of nothing."""
    actor = actor_of(request)
    hook = own_webhook(actor, uid)
    try:
        services.ping(hook, actor.user)
    except Rejected as error:
        messages.error(request, error.problems[0].message)
    else:
        messages.success(
            request, gettext("A ping is on its way; the log says in a moment what came of it.")
        )
    return redirect("webhook", uid=uid)


@require_POST
@never_cache
@require(may_tell_anybody)
def webhook_secret(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Make another secret and show it this once."""
    actor = actor_of(request)
    hook = own_webhook(actor, uid)
    return _show_secret(request, hook, services.rotate_secret(hook, actor.user))


def _show_secret(request: HttpRequest, hook: Webhook, secret: str) -> HttpResponse:
    return render(request, "doors/webhook_secret.html", {"hook": hook, "secret": secret})


@require_POST
@require(may_tell_anybody)
def webhook_delete(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Forget a webhook with its log."""
    actor = actor_of(request)
    hook = own_webhook(actor, uid)
    services.delete_webhook(hook, actor.user)
    messages.success(request, gettext("%(name)s is deleted.") % {"name": hook.name})
    return redirect("webhooks")


@require_POST
@require(may_tell_anybody)
def webhook_again(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Let a delivery be sent once more."""
    actor = actor_of(request)
    hook = own_webhook(actor, uid)
    try:
        row = Delivery.objects.filter(webhook=hook, uid=UUID(request.POST.get("delivery", "")))
        services.send_again(row.get(), actor.user)
    except (ValueError, Delivery.DoesNotExist):
        raise Http404 from None
    except Rejected as error:
        messages.error(request, error.problems[0].message)
    return redirect("webhook", uid=uid)
