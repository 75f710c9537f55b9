"""Pages of a new team: the guided form, and what its lead does next."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from finops.selectors.shares import even_shares
from gpuplatform.common import clock
from gpuplatform.common.consequences import carry_out
from gpuplatform.common.middleware import current_request_id
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected
from gpuplatform.doors.onboarding.forms import OnboardingForm
from gpuplatform.doors.onboarding.plans import Place, Plan
from gpuplatform.doors.onboarding.writing import onboard
from gpuplatform.doors.views import example_job
from queues import pages
from queues.access import Actor, actor_of, require, visible
from queues.choices import TeamRole
from queues.models import Team, User

REFUSED = 422


def may_onboard(actor: Actor) -> bool:
    """Return whether somebody may make a team with all that belongs to it."""
    return actor.may_edit_quota and actor.may_manage_people and actor.may_price


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@require(may_onboard)
def team_onboard(request: HttpRequest) -> HttpResponse:
    """Make a team with people, namespaces, queue and budget; a check keeps nothing."""
    if request.method != "POST":
        return _show(request, OnboardingForm())
    form, only_check = OnboardingForm(request.POST), "check" in request.POST
    if only_check:
        form.team.need_no_reason()
    problems, user = form.mistakes(), actor_of(request).user
    plan = form.plan()
    keep = not (only_check or problems)
    assert isinstance(user, User), "require() let somebody in"
    try:
        reason = form.team.cleaned_data.get("reason", "")
        (team, written), found = carry_out(
            plan.new_queue, lambda: _act(plan, user, reason), keep=keep
        )
    except Rejected as error:
        return _show(request, form, REFUSED, problems=problems + form.place(error.problems))
    if problems:
        return _show(request, form, REFUSED, problems=problems)
    if only_check or team is None:
        changes = pages.with_changes(written)
        gaps = {"lead": not _leads(plan), "doors": not plan.doors, "queue": not plan.target}
        told: dict[str, Any] = {"gaps": gaps, "even": even_shares(clock.now())}
        return _show(request, form, checked=True, findings=found, changes=changes, **told)
    if secrets := plan.passwords():
        return _show_begin(request, team, secrets)
    return redirect("team-begin", name=team.name)


def _act(plan: Plan, user: User, reason: str) -> tuple[Team | None, list[AuditEntry]]:
    """Make the team; return it with the audit entries that say what was written."""
    last = AuditEntry.objects.aggregate(last=Max("pk"))["last"] or 0
    team = onboard(plan, actor=user, reason=reason)
    own = AuditEntry.objects.filter(pk__gt=last, request_id=current_request_id())
    return team, list(own.order_by("pk"))


def _leads(plan: Plan) -> bool:
    return any(place.role == TeamRole.LEAD for place in plan.people.values())


def _show(
    request: HttpRequest, form: OnboardingForm, status: int = 200, **more: Any
) -> HttpResponse:
    context = {"form": form, "resources": pages.resource_choices(), "currency": settings.CURRENCY}
    return render(request, "doors/onboard.html", context | more, status=status)


@require_safe
@require()
def team_begin(request: HttpRequest, name: str) -> HttpResponse:
    """Show what the lead of a team does first: sign in, look, submit, invite."""
    team = visible(Team.objects.all(), actor_of(request), "pk").filter(name=name).first()
    if team is None:
        raise Http404
    return _show_begin(request, team)


def _show_begin(request: HttpRequest, team: Team, secrets: Iterable[Place] = ()) -> HttpResponse:
    page = pages.team_page(team)
    door = next(iter(page.local_queues), None)
    context = {
        "team": team,
        "page": page,
        "secrets": secrets,
        "door": door,
        "site": settings.SITE_URL or request.build_absolute_uri("/").rstrip("/"),
        "example": example_job(door),
    }
    return render(request, "doors/begin.html", context)
