"""Pages of the promises: teams and the audit trail. The editors stand in ``queues.editors``."""

from typing import Any, TypeVar

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from gpuplatform.common.models import AuditEntry
from gpuplatform.common.narrowing import narrowing, refused
from gpuplatform.common.pages import Viewer, rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from queues import pages
from queues.access import LEADERS, Actor, actor_of, demand, require, visible, visible_audit
from queues.choices import Role
from queues.forms import LocalQueueForm, MemberForm, NamespaceForm, add_problems
from queues.models import Team
from queues.services.queues import save_local_queue
from queues.services.teams import give_namespace, person_called, set_membership

PER_PAGE = 50
AUDIT_ALIASES = {"actor": "actor_name", "kind": "subject_kind", "subject": "q"}  # REST's names
Row = TypeVar("Row")


def may_edit(actor: Actor) -> bool:
    """Return whether somebody may edit promises."""
    return actor.may_edit_quota


def viewer_of(request: HttpRequest) -> Viewer:
    """Return who looks at a page, for its frame."""
    actor = actor_of(request)
    if actor.user is None:
        return Viewer()
    leads = any(actor.leads(team) for team in actor.team_ids)
    may = {
        "submit": actor.has_role(Role.ADMIN) or bool(actor.team_ids),
        "cost": actor.may_see_bills or leads,
        "bills": actor.may_see_bills or leads,
        "prices": actor.may_see_prices,
        "sources": actor.may_see_bills,
        "everything": actor.sees_everything,
        "requests": actor.sees_everything or bool(actor.team_ids),
        "people": actor.may_see_people,
        "audit": actor.may_see_audit or leads,
        "webhooks": actor.may_tell_all or leads,
        "settings": actor.is_admin,
    }
    roles = [str(Role(role).label) for role in sorted(actor.roles)]
    if not roles and actor.team_ids:
        roles = [gettext("team lead") if leads else gettext("member")]
    name = actor.user.get_full_name() or actor.user.get_username()
    return Viewer(name, ", ".join(roles), frozenset(key for key, yes in may.items() if yes))


# ---- teams -------------------------------------------------------------------------------------


@require_safe
@require()
def teams_page(request: HttpRequest) -> HttpResponse:
    """Show the teams that the reader may see."""
    actor = actor_of(request)
    rows = pages.team_rows(visible(Team.objects.all(), actor, "pk"))
    asks = narrowing(request, ())
    if refusal := refused(request, asks.told):
        return refusal
    if wanted_format(request):
        return rows_response(request, "teams", pages.TEAM_COLUMNS, pages.team_cells(rows))
    teams = [] if asks.told else list(rows)
    context = {"teams": teams, "actor": actor, "not_understood": asks.told}
    return render(request, "queues/teams.html", context)


@require_safe
@require()
def team_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one team: members, namespaces, queues, the doors to them."""
    return _show_team(request, _visible_team(request, name))


def _visible_team(request: HttpRequest, name: str) -> Team:
    team = visible(Team.objects.all(), actor_of(request), "pk").filter(name=name).first()
    if team is None:
        raise Http404
    return team


def _show_team(request: HttpRequest, team: Team, status: int = 200, **forms: Any) -> HttpResponse:
    actor, page = actor_of(request), pages.team_page(team)
    door = forms.pop("local_queue_form", None) or _local_queue_form(page)
    context = {
        "page": page,
        "team": team,
        "actor": actor,
        "may_staff": actor.may_edit_quota or actor.leads(team.pk),
        "member_form": MemberForm(),
        "namespace_form": NamespaceForm(),
        "local_queue_form": door,
    }
    return render(request, "queues/team.html", context | forms, status=status)


def _local_queue_form(page: pages.TeamPage, data: Any = None) -> LocalQueueForm:
    return LocalQueueForm(
        data,
        namespaces=[(n.name, n.name) for n in page.namespaces],
        queues=[(q.name, q.name) for q in page.queues],
    )


@require_POST
@require()
def team_member(request: HttpRequest, name: str) -> HttpResponse:
    """Give somebody a role in a team, or take it away."""
    actor, team = actor_of(request), _visible_team(request, name)
    demand(actor.may_edit_quota or actor.leads(team.pk), LEADERS)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _show_team(request, team, 422, member_form=form)
    role = None if "remove" in request.POST else form.cleaned_data["role"]
    try:
        user = person_called(form.cleaned_data["username"])
        set_membership(team, user, role, actor.user)
    except Rejected as rejected:
        add_problems(form, rejected.problems)
        return _show_team(request, team, 422, member_form=form)
    return redirect("team", name=name)


@require_POST
@require(may_edit)
def team_namespace(request: HttpRequest, name: str) -> HttpResponse:
    """Give a namespace to a team; its labels stay."""
    actor, team = actor_of(request), _visible_team(request, name)
    form = NamespaceForm(request.POST)
    if form.is_valid():
        try:
            wanted, reason = form.cleaned_data["namespace"], form.cleaned_data["reason"]
            give_namespace(wanted, team.name, actor=actor.user, reason=reason)
        except Rejected as error:
            add_problems(form, error.problems)
        else:
            return redirect("team", name=name)
    return _show_team(request, team, 422, namespace_form=form)


@require_POST
@require(may_edit)
def team_local_queue(request: HttpRequest, name: str) -> HttpResponse:
    """Make a door from a namespace of the team to a queue of the team."""
    actor, team = actor_of(request), _visible_team(request, name)
    form = _local_queue_form(pages.team_page(team), request.POST)
    if form.is_valid():
        try:
            save_local_queue(form.to_spec(), actor=actor.user)
        except Rejected as error:
            add_problems(form, error.problems)
        else:
            return redirect("team", name=name)
    return _show_team(request, team, 422, local_queue_form=form)


# ---- audit -------------------------------------------------------------------------------------


def _may_read_audit(actor: Actor) -> bool:
    return actor.may_see_audit or any(actor.leads(team) for team in actor.team_ids)


@require_safe
@require(_may_read_audit)
def audit_page(request: HttpRequest) -> HttpResponse:
    """Show who changed what, when and why."""
    entries = visible_audit(AuditEntry.objects.all(), actor_of(request))
    names = ("actor_name", "action", "subject_kind", "q")
    asks = narrowing(request, names, aliases=AUDIT_ALIASES)
    rows = pages.audit_rows(entries, **asks.wanted)
    rows = rows.none() if asks.told else rows
    if refusal := refused(request, asks.told):
        return refusal
    if wanted_format(request):
        cells = pages.audit_cells(rows.iterator(chunk_size=1_000))
        return rows_response(request, "audit", pages.AUDIT_COLUMNS, cells)
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "changes": pages.with_changes(page.object_list),
        "choices": pages.audit_choices(entries),
        "wanted": asks.wanted,
        "is_filtered": asks.is_set,
        "not_understood": asks.told,
    }
    return render(request, "queues/audit.html", context)
