"""Pages of what happens in a workload's life: switches, gates, checks, evictions, alerts."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from gpuplatform.common import clock
from gpuplatform.common.narrowing import narrowing, refused
from gpuplatform.common.pages import asked, rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from queues.access import SUBMITTERS, actor_of, demand, insist, require
from queues.forms import add_problems
from scheduling import switching
from scheduling.checking import delete_check, save_check
from scheduling.engine.terms import CheckVerdict
from scheduling.forms import CheckForm
from scheduling.loader import load_platform
from scheduling.models import AdmissionCheck, Workload
from scheduling.selectors import evictions, priorities, workloads
from scheduling.selectors.alerts import (
    alert_lines,
    cleared_lines,
    current_findings,
)

PER_PAGE = 50
WINDOWS = {"7": 7, "30": 30, "365": 365}  # days


@require_safe
@require()
def priority_classes(request: HttpRequest) -> HttpResponse:
    """List named priorities, highest first, with the work that has them now."""
    rows = priorities.priority_rows(actor_of(request))
    if wanted_format(request):
        cells = (row.cells() for row in rows)
        return rows_response(request, "priority-classes", priorities.PRIORITY_COLUMNS, cells)
    context = {"rows": rows, "actor": actor_of(request), "limit": settings.OWN_PRIORITY_LIMIT}
    return render(request, "scheduling/priority_classes.html", context)


def _own(request: HttpRequest, uid: UUID) -> Workload:
    """Return a workload that the actor may act on."""
    actor = actor_of(request)
    row = workloads.workload_rows(actor).filter(uid=uid).first()
    if row is None:
        raise Http404
    demand(actor.may_submit(row.team_id), SUBMITTERS)
    return row


def _told(request: HttpRequest, act: Callable[[], object], words: str) -> None:
    """Act and say so, or say why not."""
    try:
        act()
        messages.success(request, words)
    except Rejected as error:
        messages.error(request, " ".join(problem.message for problem in error.problems))


@require_POST
@require()
def workload_active(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Deactivate a workload, or reactivate it."""
    row, user = _own(request, uid), actor_of(request).user
    active = request.POST.get("active") == "yes"
    done = gettext("%(name)s is active again.") if active else gettext("%(name)s is deactivated.")
    _told(
        request,
        lambda: switching.set_active(uid, active, actor=user),
        done % {"name": row.name},
    )
    return redirect("workload", uid=uid)


@require_POST
@require()
def workload_gate(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Open one gate of a workload."""
    row, user, gate = _own(request, uid), actor_of(request).user, request.POST.get("gate", "")
    left = tuple(name for name in row.gates if name != gate)
    words = gettext("The gate %(gate)s is open.") % {"gate": gate[:80]}
    _told(request, lambda: switching.open_gates(uid, left, actor=user), words)
    return redirect("workload", uid=uid)


@require_POST
@require()
def workload_check(request: HttpRequest, uid: UUID, name: str) -> HttpResponse:
    """Answer an admission check about a workload; for platform admins."""
    actor = actor_of(request)
    if not workloads.workload_rows(actor).filter(uid=uid).exists():
        raise Http404
    insist(actor, "may_operate")
    state, message = request.POST.get("state", ""), request.POST.get("message", "").strip()
    if state not in set(CheckVerdict) - {CheckVerdict.PENDING}:
        raise Http404
    _told(
        request,
        lambda: switching.answer_check(
            uid, name, CheckVerdict(state), actor=actor.user, message=message
        ),
        gettext("The answer is noted."),
    )
    return redirect("workload", uid=uid)


# ---- admission checks --------------------------------------------------------------------------
@require_safe
@require(lambda actor: actor.sees_everything)
def admission_checks(request: HttpRequest) -> HttpResponse:
    """Show what work has to pass beside quota and nodes; ``?edit=`` fills the form."""
    row = AdmissionCheck.objects.filter(name=asked(request, "edit")).first()
    return _checks_page(request, CheckForm.of(row) if row else CheckForm())


@require_POST
@require(lambda actor: actor.may_edit_quota)
def admission_check_save(request: HttpRequest) -> HttpResponse:
    """Create or change an admission check."""
    form = CheckForm(request.POST)
    if not form.is_valid():
        return _checks_page(request, form)
    entered = form.cleaned_data
    spec = form.to_spec(AdmissionCheck.objects.filter(name=entered["name"].strip()).first())
    user, seen = actor_of(request).user, entered["version"] or 0
    try:
        save_check(spec, actor=user, reason=entered["reason"], if_version=seen)
    except Rejected as error:
        add_problems(form, error.problems)
        return _checks_page(request, form)
    messages.success(request, gettext("%(name)s is saved.") % {"name": spec.name})
    return redirect("admission-checks")


@require_POST
@require(lambda actor: actor.may_edit_quota)
def admission_check_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Delete an admission check."""
    if not AdmissionCheck.objects.filter(name=name).exists():
        raise Http404
    words = gettext("%(name)s is deleted.") % {"name": name}
    _told(request, lambda: delete_check(name, actor=actor_of(request).user), words)
    return redirect("admission-checks")


def _checks_page(request: HttpRequest, form: CheckForm) -> HttpResponse:
    rows = AdmissionCheck.objects.all()
    context = {"rows": rows, "form": form, "actor": actor_of(request)}
    return render(request, "scheduling/admission_checks.html", context)


# ---- alerts ------------------------------------------------------------------------------------
@require_safe
@require()
def alerts_page(request: HttpRequest) -> HttpResponse:
    """Show what an admin should look at now, and what no longer holds."""
    actor = actor_of(request)
    lines = alert_lines(current_findings(load_platform(clock.now())), actor)
    context = {"lines": lines, "cleared": cleared_lines(actor), "actor": actor}
    return render(request, "scheduling/alerts.html", context)


@require_safe
@require()
def evictions_page(request: HttpRequest) -> HttpResponse:
    """Show who was evicted for whom, and what that threw away in GPU-hours and money."""
    actor = actor_of(request)
    asks = narrowing(request, ("team", "reason", "days"), choices={"days": WINDOWS})
    wanted = {name: asks.wanted[name] for name in ("team", "reason")}
    days = WINDOWS.get(asks.wanted["days"], 30)
    rows = evictions.eviction_rows(actor, since=clock.now() - timedelta(days=days), **wanted)
    rows = rows.none() if asks.told else rows
    if refusal := refused(request, asks.told):
        return refusal
    if wanted_format(request):
        cells = evictions.eviction_cells(evictions.as_evictions(rows.iterator(), actor))
        return rows_response(request, "evictions", evictions.EVICTION_COLUMNS, cells)
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "actor": actor,
        "page": page,
        "rows": list(evictions.as_evictions(page.object_list, actor)),
        "lost_hours": evictions.lost_hours(rows),
        "wanted": wanted,
        "days": days,
        "windows": WINDOWS.values(),
        "is_filtered": any(wanted.values()) or asks.told,
        "not_understood": asks.told,
        "choices": evictions.eviction_choices(actor),
        "currency": settings.CURRENCY,
    }
    return render(request, "scheduling/evictions.html", context)
