"""Pages of sources: the list, a calendar of days, a test, a judgement."""

from collections.abc import Callable
from datetime import date
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from finops.ingest import configuring, loading, quarantine, testing
from finops.models import Fetch, Source
from finops.models.sources import Outcome, SourceKind
from finops.selectors import sources
from finops.source_forms import DayForm, ReasonForm, SourceForm, kinds
from gpuplatform.common import clock
from gpuplatform.common.pages import asked, rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from queues.access import actor_of, demand_visible, require
from queues.forms import add_problems
from queues.models import User

LIST_COLUMNS = (
    *("name", "kind", "cluster", "enabled", "last_day", "loaded", "partial", "missing"),
    *("waiting", "failure"),
)
DAY_COLUMNS = (
    *("day", "starts_at", "ends_at", "state", "ratio", "tried_at", "rows", "code", "sha256"),
)


@require()
@require_safe
def source_list(request: HttpRequest) -> HttpResponse:
    """List the sources with what is there of each, and what each said last."""
    demand_visible(actor_of(request).may_see_bills)
    rows = sources.source_rows(clock.now())
    if wanted_format(request):
        return rows_response(request, "sources", LIST_COLUMNS, map(_list_cells, rows))
    context = {
        "rows": rows,
        "kinds": kinds(),
        "gaps": sum(row.missing for row in rows),
        "waiting": sum(row.waiting for row in rows),
        "off": [row.source.name for row in rows if not row.source.enabled],
        "actor": actor_of(request),
    }
    return render(request, "finops/sources.html", context)


@require()
@require_safe
def source_detail(request: HttpRequest, name: str) -> HttpResponse:
    """Show a source with a month of days, and what waits for a judgement."""
    demand_visible(actor_of(request).may_see_bills)
    try:
        view = sources.source_page(name, asked(request, "month"), clock.now())
    except ValueError as error:
        raise Http404 from error
    if view is None:
        raise Http404
    if wanted_format(request):
        rows = sources.coverage_rows(view.row.source, view.month.first_day, view.month.last_day)
        title = f"source_{name}_{view.month.name}"
        return rows_response(request, title, DAY_COLUMNS, map(_day_cells, rows))
    context = {"view": view, "source": view.row.source, "actor": actor_of(request)}
    return render(request, "finops/source.html", context)


@require(lambda actor: actor.is_admin)
@require_http_methods(["GET", "HEAD", "POST"])
def source_new(request: HttpRequest) -> HttpResponse:
    """Add a source; ``?kind=`` says which."""
    kind = asked(request, "kind") or SourceKind.OPENCOST.value
    if kind not in SourceKind.values:
        raise Http404
    return _edit(request, SourceForm(kind, data=request.POST or None))


@require(lambda actor: actor.is_admin)
@require_http_methods(["GET", "HEAD", "POST"])
def source_edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a source, or switch it off."""
    source = _source(name)
    return _edit(request, SourceForm(source.kind, source, data=request.POST or None))


def _edit(request: HttpRequest, form: SourceForm) -> HttpResponse:
    if form.is_valid():
        try:
            spec, reason = form.spec(), form.cleaned_data["reason"]
            if form.standing is None and Source.objects.filter(name=spec.name).exists():
                form.add_error("name", _("There is a source of that name."))
            else:
                user, seen = actor_of(request).user, form.version()
                source = configuring.save_source(spec, user, reason=reason, if_version=seen)
                messages.success(request, _("{name} is saved.").format(name=source.name))
                return redirect("source", source.name)
        except Rejected as refusal:
            problems = [
                type(one)(one.path.rpartition(".")[2], one.code, one.message, one.numbers)
                for one in refusal.problems
            ]
            add_problems(form, problems)
    status = 422 if form.is_bound and form.errors else 200
    context = {"form": form, "source": form.standing, "kinds": kinds()}
    return render(request, "finops/source_form.html", context, status=status)


@require_POST
@require(lambda actor: actor.may_price)
def source_test(request: HttpRequest, name: str) -> HttpResponse:
    """Ask a source about its last whole hour and say what it answered."""
    source = _source(name)
    result = testing.test_source(source)
    if result.code:
        messages.error(request, result.sentence)
    else:
        words = _("{name} answers: {rows} rows of the hour from {start} UTC.")
        start = f"{result.window.start:%Y-%m-%d %H:%M}"
        messages.success(request, words.format(name=name, rows=result.rows, start=start))
        for sentence in result.note_sentences:
            messages.warning(request, sentence)
    return redirect("source", name)


@require_POST
@require(lambda actor: actor.may_price)
def source_load(request: HttpRequest, name: str) -> HttpResponse:
    """Load one day now."""
    source = _source(name)
    form = DayForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Name a day like 2026-06-01."))
        return redirect("source", name)
    day = form.cleaned_data["day"]
    return _judged(request, source, day, lambda: loading.load_day(source, day))


@require_POST
@require(lambda actor: actor.may_price)
def source_judge(request: HttpRequest, name: str, day: date, verdict: str) -> HttpResponse:
    """Accept or reject the reading of a day that waits."""
    judges = {"accept": quarantine.accept_reading, "reject": quarantine.reject_reading}
    demand_visible(verdict in judges)
    source = _source(name)
    form = ReasonForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    actor = actor_of(request).user
    assert isinstance(actor, User), "require() let somebody in"
    return _judged(request, source, day, lambda: judges[verdict](source, day, actor, reason))


def _judged(
    request: HttpRequest, source: Source, day: date, act: Callable[[], Fetch]
) -> HttpResponse:
    """Do what changes a day, and say what became of it."""
    try:
        fetch = act()
    except Rejected as refusal:
        for problem in refusal.problems:
            messages.error(request, problem.message)
    else:
        words = _("{day}: {outcome}, {rows} rows.").format(
            day=day, outcome=Outcome(fetch.outcome).label, rows=fetch.rows
        )
        bad = fetch.outcome in {Outcome.FAILED, Outcome.QUARANTINED}
        level = messages.ERROR if bad else messages.SUCCESS
        said = fetch.sentence if bad else ""
        messages.add_message(request, level, f"{words} {said}".strip())
    return redirect(f"{reverse('source', args=[source.name])}?month={day:%Y-%m}")


def _source(name: str) -> Source:
    source = Source.objects.filter(name=name).first()
    if source is None:
        raise Http404
    return source


def _list_cells(row: sources.SourceRow) -> dict[str, Any]:
    source = row.source
    names = ("last_day", "loaded", "partial", "missing", "waiting")
    return {
        **{name: getattr(source, name) for name in ("name", "kind", "cluster", "enabled")},
        **{name: getattr(row, name) for name in names},
        "failure": row.failure.code if row.failure else "",
    }


def _day_cells(coverage: Any) -> dict[str, Any]:
    applied, last = coverage.applied, coverage.last
    return {
        **{name: getattr(coverage, name) for name in DAY_COLUMNS[:6]},
        "rows": applied.rows if applied else 0,
        "code": last.code if last else "",
        "sha256": applied.sha256 if applied else "",
    }
