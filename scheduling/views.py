"""Pages of the scheduling room: ask for what the page shows, choose a template, nothing else."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe
from django_tables2 import RequestConfig

from gpuplatform.common import clock
from gpuplatform.common.figures import figure_response, theme_of
from gpuplatform.common.narrowing import Narrowing, narrowing, refused
from gpuplatform.common.pages import asked, extra_tiles, rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from queues.access import SUBMITTERS, actor_of, demand, require, visible
from queues.models import ClusterQueue, Team
from scheduling import charts, services
from scheduling.acting import WORDS
from scheduling.engine.snapshot import FlavorResource
from scheduling.engine.view import placeable
from scheduling.forms import AnswerForm, WorkloadFilter
from scheduling.selectors import (
    counters,
    fair_share,
    findings,
    folding,
    history,
    loans,
    quotas,
    workloads,
)
from scheduling.selectors.bars import bars_by_flavor
from scheduling.selectors.details import cohort_page as read_cohort
from scheduling.selectors.details import queue_page as read_queue
from scheduling.selectors.events import event_line
from scheduling.selectors.line import waiting_sums
from scheduling.selectors.overview import load_overview
from scheduling.selectors.pages import Pages
from scheduling.selectors.promises import standing_alerts
from scheduling.selectors.tiles import overview_tiles
from scheduling.tables import WorkloadTable

PER_PAGE = 50
LOAN_FILTERS = ("borrower", "lender", "flavor")
OPEN = ("1", "true", "0", "false")  # the first two: only what is still on loan


@require_safe
@require()
def overview(request: HttpRequest) -> HttpResponse:
    """Show how full it is, who holds what, who waits, and what was decided last."""
    actor, now = actor_of(request), clock.now()
    page = load_overview(actor, now)
    _hours, borrowers = page.borrowers
    context = {
        "page": page,
        "actor": actor,
        "longest": page.longest,
        "tiles": [*overview_tiles(page), *extra_tiles(request)][:6],
        "sentence": findings.overview_sentence(page),
        "flavors": bars_by_flavor(page.board),
        "use_finding": findings.use_sentence(page.use),
        "use_head": charts.use_head(),
        "use_rows": charts.use_table(page.use),
        "borrowed_finding": findings.borrowed_sentence(borrowers),
        "borrowed_head": charts.borrowed_head(),
        "borrowed_rows": charts.borrowed_table(borrowers),
        "decisions": [event_line(event, actor) for event in page.decisions],
        "alerts": standing_alerts(page.board.snapshot, actor) if actor.sees_everything else [],
    }
    return render(request, "scheduling/overview.html", context)


@require_safe
@require()
def quota_use_chart(request: HttpRequest) -> HttpResponse:
    """Answer the figure of use against nominal; ``?queue=`` narrows it to one queue."""
    queue = asked(request, "queue")
    now = clock.now()
    held = history.use_in(history.last_days(now), actor_of(request), queue)
    use = history.quota_use(held, now)
    return figure_response(charts.quota_use_figure(theme_of(request), use, f"use {queue}"))


@require_safe
@require()
def borrowed_chart(request: HttpRequest) -> HttpResponse:
    """Answer the figure of borrowed GPUs over time."""
    now = clock.now()
    use = history.use_in(history.last_days(now), actor_of(request))
    hours, borrowers = history.borrowed_over_time(use, now)
    return figure_response(charts.borrowed_figure(theme_of(request), hours, borrowers))


# ---- queues ------------------------------------------------------------------------------------


@require_safe
@require()
def queues_page(request: HttpRequest) -> HttpResponse:
    """Show the tree of cohorts and queues with the bars of one column."""
    actor = actor_of(request)
    board = quotas.load_board(actor)
    asks = _queues_asked(request, board)
    if refusal := refused(request, asks.told):
        return refusal
    wanted = asks.wanted
    flavor, resource = wanted["flavor"], wanted["resource"]
    column = quotas.choose_column(board, flavor, resource)
    rows = quotas.tree_rows(board, column or NO_COLUMN)
    is_narrowed = bool(asks.told or wanted["q"] or wanted["only"])
    names = set() if asks.told else folding.matching(rows, wanted["q"], wanted["only"])
    if wanted_format(request):
        cells = quotas.quota_cells(board, flavor, resource)
        cells = (c for c in cells if not is_narrowed or c["name"] in names)
        return rows_response(request, "queues", quotas.QUOTA_COLUMNS, cells)
    bars = [row.bar for row in rows if row.kind == "queue" and row.bar]
    context = {
        "actor": actor,
        "board": board,
        "exists": bool(rows),
        "rows": folding.narrowed(rows, names)[: folding.MOST_ROWS]
        if is_narrowed
        else folding.folded(rows, wanted["cohort"]),
        "wanted": wanted,
        "is_narrowed": is_narrowed,
        "not_understood": asks.told,
        "column": column,
        "columns": board.columns,
        "sentence": findings.queues_sentence(
            bars,
            *column,
            board.kept_in(column),
            room=placeable(board.snapshot).get(column),
            only_own=not actor.sees_everything,
        )
        if column
        else findings.queues_sentence([], "", ""),
        "loans": loans.open_loans(
            actor, pages=board.pages, flavor=column.flavor if column else ""
        ),
        "alerts": standing_alerts(board.snapshot, actor) if actor.sees_everything else [],
    }
    return render(request, "scheduling/queues.html", context)


NO_COLUMN = FlavorResource("", "")


def _queues_asked(request: HttpRequest, board: quotas.Board) -> Narrowing:
    """Read which queues are wanted, of what there is for the reader."""
    known = {
        "flavor": {column.flavor for column in board.columns},
        "resource": {column.resource for column in board.columns},
        "cohort": {name for name in board.snapshot.cohorts if board.pages.of_lender(name)},
        "only": folding.ONLY,
    }
    return narrowing(request, ("q", *known), choices=known)


@require_safe
@require()
def queue_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one queue: what it holds, borrows and lends, who waits, who runs."""
    actor = actor_of(request)
    page = read_queue(actor, name, clock.now())
    if page is None:
        raise Http404
    if wanted_format(request):
        cells = quotas.quota_cells(page.board)
        return rows_response(request, name, quotas.QUOTA_COLUMNS, cells)
    context = {
        "actor": actor,
        "page": page,
        "queue": page.queue,
        "sentence": findings.queue_sentence(name, page.bars),
        "use_finding": findings.use_sentence(page.use),
        "use_head": charts.use_head(),
        "use_rows": charts.use_table(page.use),
        "chart_url": f"{reverse('chart-quota-use')}?queue={name}",
    }
    return render(request, "scheduling/queue.html", context)


@require_safe
@require()
def cohort_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one cohort: its queues, and who lends to whom inside it."""
    actor = actor_of(request)
    page = read_cohort(actor, name)
    if page is None:
        raise Http404
    return render(request, "scheduling/cohort.html", {"actor": actor, "page": page})


# ---- workloads ---------------------------------------------------------------------------------


@require_safe
@require()
def workloads_page(request: HttpRequest) -> HttpResponse:
    """Show workloads; a file gets all rows."""
    actor = actor_of(request)
    rows = workloads.workload_rows(actor)
    teams = visible(Team.objects.all(), actor, "pk")
    own = visible(ClusterQueue.objects.all(), actor).order_by("name")
    names = list(own.values_list("name", flat=True))
    found = WorkloadFilter(request.GET, queryset=rows, teams=teams, queues=names)
    if refusal := refused(request, found.told):
        return refusal
    if wanted_format(request):
        cells = workloads.workload_cells(found.qs.iterator(chunk_size=1_000))
        return rows_response(request, "workloads", workloads.WORKLOAD_COLUMNS, cells)
    table = WorkloadTable(found.qs, pages=Pages(actor), may_act=actor.may_submit)
    RequestConfig(request, paginate={"per_page": PER_PAGE}).configure(table)
    context = {
        "table": table,
        "is_filtered": bool(found.told) or found.form.has_changed(),
        "not_understood": found.told,
        "filter": found,
        "acts": WORDS if actor.is_admin or actor.team_ids else {},
        "actor": actor,
        "sentence": findings.workloads_sentence(
            waiting_sums(actor), workloads.active_count(actor)
        ),
    }
    return render(request, "scheduling/workloads.html", context)


@require_safe
@require()
def workload_page(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Show one workload: where it stands, why it waits, what happened."""
    actor = actor_of(request)
    story = workloads.workload_story(actor, uid)
    if story is None:
        raise Http404
    context = {
        "story": story,
        "workload": story.workload,
        "sentence": findings.workload_sentence(story),
        "yaml": workloads.spec_yaml(story.workload),
        "life": story.life,
        "counters": counters.workload_counters(story.workload, clock.now()),
        "answer": AnswerForm(),
        "may_switch": story.workload.status != "finished"
        and actor.may_submit(story.workload.team_id),
        "may_cancel": story.workload.status != "finished"
        and actor.may_submit(story.workload.team_id),
    }
    return render(request, "scheduling/workload.html", context)


@require_POST
@require()
def workload_cancel(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Cancel a workload."""
    actor = actor_of(request)
    workload = workloads.workload_rows(actor).filter(uid=uid).first()
    if workload is None:
        raise Http404
    demand(actor.may_submit(workload.team_id), SUBMITTERS)
    try:
        services.cancel_workload(uid, actor=actor.user)
        messages.success(request, gettext("%(name)s is cancelled.") % {"name": workload.name})
    except Rejected as error:
        messages.error(request, " ".join(problem.message for problem in error.problems))
    return redirect("workload", uid=uid)


# ---- fair share ---------------------------------------------------------------------------------


@require_safe
@require()
def fair_share_page(request: HttpRequest) -> HttpResponse:
    """Show whose turn it is in every tree, why, and against what."""
    actor = actor_of(request)
    every = fair_share.fair_trees(actor)
    asks = narrowing(request, ("tree",), choices={"tree": [tree.root for tree in every]})
    if refusal := refused(request, asks.told):
        return refusal
    root = asks.wanted["tree"]
    trees = [tree for tree in every if root in {"", tree.root} and not asks.told]
    if wanted_format(request):
        cells = fair_share.fair_cells(trees)
        return rows_response(request, "fair-share", fair_share.FAIR_COLUMNS, cells)
    context = {
        "actor": actor,
        "trees": folding.shortened(trees),
        "roots": [tree.root for tree in every],
        "wanted": root,
        "is_filtered": asks.is_set,
        "not_understood": asks.told,
        "sentence": fair_share.headline(trees or every),
    }
    return render(request, "scheduling/fair_share.html", context)


# ---- loans --------------------------------------------------------------------------------------


@require_safe
@require()
def borrowing_page(request: HttpRequest) -> HttpResponse:
    """Show the ledger of loans."""
    actor, now = actor_of(request), clock.now()
    pages = Pages(actor)
    asks = narrowing(request, (*LOAN_FILTERS, "open"), choices={"open": OPEN})
    wanted = {name: asks.wanted[name] for name in LOAN_FILTERS}
    open_only = asks.wanted["open"] in OPEN[:2]
    rows = loans.loan_rows(actor, open_only=open_only, **wanted)
    rows = rows.none() if asks.told else rows
    if refusal := refused(request, asks.told):
        return refusal
    if wanted_format(request):
        cells = loans.loan_cells(loans.as_loans(rows.iterator(), actor, now, pages))
        return rows_response(request, "loans", loans.LOAN_COLUMNS, cells)
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    current = loans.open_loans(actor, pages=pages)
    context = {
        "actor": actor,
        "page": page,
        "loans": list(loans.as_loans(page.object_list, actor, now, pages)),
        "currency": settings.CURRENCY,
        "current": current,
        "wanted": wanted,
        "open_only": open_only,
        "is_filtered": open_only or any(wanted.values()) or asks.told,
        "not_understood": asks.told,
        "choices": loans.loan_choices(actor),
        "sentence": findings.loans_sentence(current),
    }
    return render(request, "scheduling/borrowing.html", context)
