"""The page of groups at the identity provider, for platform admins: what their members are."""

from django.conf import settings
from django.contrib import messages
from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from gpuplatform.common.problems import Rejected
from queues import pages
from queues.access import Actor, actor_of, require
from queues.forms import GroupGrantForm, add_problems
from queues.models import GroupGrant, Team
from queues.services import add_group_grant, remove_group_grant

REFUSED = 422


def may_manage(actor: Actor) -> bool:
    """Return whether somebody may say what groups give: who may give it by hand."""
    return actor.may_manage_people


@require_http_methods(["GET", "HEAD", "POST"])
@require(may_manage)
def groups_page(request: HttpRequest) -> HttpResponse:
    """Show what groups give, and add to it."""
    form = GroupGrantForm(request.POST or None, teams=pages.team_choices())
    if request.method != "POST":
        return _show(request, form)
    if not form.is_valid():
        return _show(request, form, REFUSED)
    name, role = form.wanted()
    team = Team.objects.filter(name=name).first() if name else None
    try:
        add_group_grant(form.cleaned_data["group"], team, role, actor=actor_of(request).user)
    except Rejected as error:
        add_problems(form, error.problems)
        return _show(request, form, REFUSED)
    words = gettext("%(name)s counts from the next sign-in of its members on.")
    messages.success(request, words % {"name": form.cleaned_data["group"]})
    return redirect("groups")


@require_POST
@require(may_manage)
def group_remove(request: HttpRequest) -> HttpResponse:
    """Let a group give something no longer."""
    key = request.POST.get("key", "")
    grant = GroupGrant.objects.filter(pk=int(key)).first() if key.isdecimal() else None
    if grant is None:
        raise Http404
    remove_group_grant(grant, actor=actor_of(request).user)
    words = gettext("%(name)s gives that no longer; its members lose it at their next sign-in.")
    messages.success(request, words % {"name": grant.group})
    return redirect("groups")


def _show(request: HttpRequest, form: GroupGrantForm, status: int = 200) -> HttpResponse:
    by_team = F("team__name").asc(nulls_first=True)
    grants = GroupGrant.objects.select_related("team").order_by("group", by_team, "role")
    context = {
        "form": form,
        "grants": list(grants),
        "provider": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
        "claim": settings.OIDC_GROUPS_CLAIM,
    }
    return render(request, "queues/groups.html", context, status=status)
