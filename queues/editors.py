"""The editors of teams, queues, flavors and the like: one walk for all of them.

A refusal puts each problem at its field. Somebody else's faster edit is answered with 412 and
the values of both sides; what was typed stays in the form, which then applies to the version
that is current.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from gpuplatform.common.consequences import carry_out
from gpuplatform.common.problems import Rejected, Stale
from queues import merging, pages
from queues.access import actor_of, require
from queues.descriptions import (
    describe_cluster_queue,
    describe_cohort,
    describe_flavor,
    describe_priority_class,
    describe_team,
    describe_topology,
)
from queues.forms import (
    CohortForm,
    EditForm,
    FlavorForm,
    PriorityClassForm,
    QueueForm,
    QuotaRows,
    TeamForm,
    TopologyForm,
    add_problems,
    form_problems,
    quota_rows,
)
from queues.models import ClusterQueue, Cohort, PriorityClass, ResourceFlavor, Team, Topology
from queues.services.cohorts import save_cohort
from queues.services.flavors import save_flavor, save_topology
from queues.services.queues import save_cluster_queue, save_priority_class
from queues.services.teams import save_team
from queues.specs import ResourceGroupSpec, TeamSpec
from queues.views import may_edit

REFUSED, CONFLICT = 422, 412
form_page = require_http_methods(["GET", "HEAD", "POST"])


@dataclass
class Editing:
    """One edit: the row as it is (None: a new one), the form, and how to save what it asks for."""

    kind: str  # team | cohort | queue | flavor | topology | priority_class
    row: Any
    spec: Any  # of the row as it is now; None for a new one
    form: EditForm
    shown: Callable[[Any], dict[str, Any]]  # what the form shows of a spec
    wanted: Callable[[Any], Any]  # the spec asked for; what no form shows is that of the argument
    save: Callable[..., Any]
    rows: QuotaRows | None = None
    page: str = ""  # to go to afterwards, where objects of the kind have no page of their own

    def are_valid(self) -> bool:
        """Return whether the shape of everything typed is right."""
        valid = self.form.is_valid()
        return (self.rows is None or self.rows.is_valid()) and valid

    def mistakes(self) -> list[dict[str, str]]:
        """Return what is wrong in shape, for the summary."""
        return form_problems(self.form, *(self.rows.forms if self.rows is not None else ()))


def answer(request: HttpRequest, editing: Editing) -> HttpResponse:
    """Show the form, or save it and go to the object's page."""
    if request.method != "POST":
        return _show(request, editing)
    only_check, name = "check" in request.POST, editing.row.name if editing.row else ""
    if only_check:
        editing.form.need_no_reason()
    if not editing.are_valid():
        return _show(request, editing, REFUSED, problems=editing.mistakes())
    spec, data = editing.wanted(editing.spec), editing.form.cleaned_data
    version = 0 if editing.row is None else data["version"]
    kept = lambda told: not (only_check or editing.form.unconfirmed(told, name))  # noqa: E731
    try:
        who = {"actor": actor_of(request).user, "reason": data["reason"], "if_version": version}
        saved, found = carry_out(spec, lambda: editing.save(spec, **who), keep=kept)
    except Stale as error:
        return _show_conflict(request, editing, error)
    except Rejected as error:
        place = editing.rows.add_problem if editing.rows is not None else None
        problems = add_problems(editing.form, error.problems, *([place] if place else []))
        return _show(request, editing, REFUSED, problems=problems)
    told = {"checked": True, "findings": found, "asks_name": editing.form.unconfirmed(found, name)}
    if only_check or told["asks_name"]:
        lacking = [] if only_check else [unnamed(editing.form, name)]
        status = REFUSED if lacking else 200
        return _show(request, editing, status, problems=lacking, **told)
    messages.success(request, gettext("%(name)s is saved.") % {"name": saved.name})
    for diagnostic in found:
        messages.warning(request, f"{diagnostic.sentence} {diagnostic.next_step}".strip())
    return redirect(editing.page) if editing.page else redirect(editing.kind, name=saved.name)


def unnamed(form: forms.Form, name: str) -> dict[str, str]:
    """Say at its field that the name must be typed, for the summary, too."""
    words = gettext("This costs others running work: type %(name)s to apply it.")
    message = words % {"name": name}
    form.add_error("confirm", message)
    field = form["confirm"].id_for_label
    return {"field": field, "code": "confirm", "path": "confirm", "message": message}


def _show_conflict(request: HttpRequest, editing: Editing, error: Stale) -> HttpResponse:
    if editing.row is None:
        words = gettext("there is one with this name already")
        editing.form.add_error("name", words)
        where = editing.form["name"].id_for_label
        taken = {"field": where, "code": "duplicate", "path": "name", "message": words}
        return _show(request, editing, REFUSED, problems=[taken])
    row, theirs = editing.row, editing.spec
    seen = merging.read_seen(editing.form.data.get("seen", ""))
    yours = editing.wanted(merging.as_it_was(seen, theirs))
    merged = merging.merge(seen, theirs, yours)
    carried = request.POST.copy()
    carried.update({"version": str(row.version), "seen": pages.as_seen(theirs)})  # the last counts
    carried.update({name: str(value) for name, value in editing.shown(merged).items()})
    behind = row.version - (editing.form.cleaned_data["version"] or 0)
    editing.form.data = carried
    if editing.rows is not None:
        editing.rows = _table(merged.groups)
    conflict = {
        "words": " ".join(problem.message for problem in error.problems),
        "clashes": pages.clashes(seen, theirs, yours),
        "changes": pages.newer_changes(type(row).__name__, row.name, behind),
    }
    return _show(request, editing, CONFLICT, conflict=conflict)


def _show(request: HttpRequest, editing: Editing, status: int = 200, **more: Any) -> HttpResponse:
    context = {"editing": editing, "form": editing.form, "row": editing.row, "rows": editing.rows}
    context |= {"resources": pages.resource_choices()}
    is_live = "HX-Request" in request.headers and "check" in request.POST
    page = "queues/live_preview.html" if is_live else f"queues/{editing.kind}_form.html"
    return render(request, page, context | more, status=status)


def _start(row: Any, spec: Any, initial: dict[str, Any]) -> dict[str, Any]:
    """Return what a form shows first, with the version and the state that were seen."""
    if row is None:
        return initial
    return initial | {"version": row.version, "seen": pages.as_seen(spec)}


def _table(groups: Iterable[ResourceGroupSpec], data: Any = None) -> QuotaRows:
    return quota_rows(pages.flavor_choices(), data, groups, pages.resource_choices())


def _required(row: Any) -> Any:
    if row is None:
        raise Http404
    return row


# ---- the editors -------------------------------------------------------------------------------


@form_page
@require(may_edit)
def team_edit(request: HttpRequest, name: str = "") -> HttpResponse:
    """Edit a team; without a name, a new one."""
    row = _required(Team.objects.filter(name=name).first()) if name else None
    spec = describe_team(row) if row else None
    form = TeamForm(
        request.POST or None, initial=_start(row, spec, _team_shown(spec)), is_new=row is None
    )
    wanted = lambda _current: form.to_spec(name)  # noqa: E731  # evaluated once valid
    return answer(request, Editing("team", row, spec, form, _team_shown, wanted, save_team))


def _team_shown(spec: TeamSpec | None) -> dict[str, Any]:
    columns = ("display_name", "cost_center", "accounting_mode", "description")
    return {name: getattr(spec, name) for name in columns} if spec else {}


@form_page
@require(may_edit)
def queue_edit(request: HttpRequest, name: str = "") -> HttpResponse:
    """Edit a cluster queue; without a name, a new one with the recommended defaults."""
    known = ClusterQueue.objects.select_related("team", "cohort").prefetch_related("quotas")
    row = _required(known.filter(name=name).first()) if name else None
    spec = describe_cluster_queue(row) if row else None
    form = QueueForm(
        request.POST or None,
        initial=_start(row, spec, QueueForm.initial_of(spec) | _asked(request)),
        is_new=row is None,
        part=pages.weight_part(row) if row else None,
        teams=pages.team_choices(),
        cohorts=pages.cohort_choices(),
    )
    rows = _table(spec.groups if spec else (), request.POST or None)
    wanted = lambda current: form.to_spec(rows.groups(), current)  # noqa: E731
    shown = QueueForm.initial_of
    return answer(
        request, Editing("queue", row, spec, form, shown, wanted, save_cluster_queue, rows)
    )


def _asked(request: HttpRequest) -> dict[str, str]:
    """Return what the link to a new queue filled in already."""
    return {name: request.GET[name] for name in ("team", "cohort") if request.GET.get(name)}


@form_page
@require(may_edit)
def cohort_edit(request: HttpRequest, name: str = "") -> HttpResponse:
    """Edit a cohort; without a name, a new one."""
    known = Cohort.objects.select_related("parent").prefetch_related("quotas")
    row = _required(known.filter(name=name).first()) if name else None
    spec = describe_cohort(row) if row else None
    form = CohortForm(
        request.POST or None,
        initial=_start(row, spec, CohortForm.initial_of(spec)),
        is_new=row is None,
        cohorts=pages.cohort_choices(without=name),
        part=pages.weight_part(row) if row else None,
    )
    rows = _table(spec.groups if spec else (), request.POST or None)
    wanted = lambda current: form.to_spec(rows.groups(), current)  # noqa: E731
    shown = CohortForm.initial_of
    return answer(request, Editing("cohort", row, spec, form, shown, wanted, save_cohort, rows))


@form_page
@require(may_edit)
def flavor_edit(request: HttpRequest, name: str = "") -> HttpResponse:
    """Edit a kind of node; without a name, a new one."""
    row = _required(ResourceFlavor.objects.filter(name=name).first()) if name else None
    spec = describe_flavor(row) if row else None
    form = FlavorForm(
        request.POST or None,
        initial=_start(row, spec, FlavorForm.initial_of(spec)),
        is_new=row is None,
        topologies=pages.topology_choices(),
    )
    shown = FlavorForm.initial_of
    return answer(request, Editing("flavor", row, spec, form, shown, form.to_spec, save_flavor))


@form_page
@require(may_edit)
def topology_edit(request: HttpRequest, name: str = "") -> HttpResponse:
    """Edit a topology; without a name, a new one."""
    known = Topology.objects.prefetch_related("levels")
    row = _required(known.filter(name=name).first()) if name else None
    spec = describe_topology(row) if row else None
    initial = _start(row, spec, TopologyForm.initial_of(spec))
    form = TopologyForm(request.POST or None, initial=initial, is_new=row is None)
    shown = TopologyForm.initial_of
    return answer(
        request, Editing("topology", row, spec, form, shown, form.to_spec, save_topology)
    )


@form_page
@require(may_edit)
def priority_class_edit(request: HttpRequest, kind: str = "", name: str = "") -> HttpResponse:
    """Edit a priority class; without a name, a new one."""
    row = _required(PriorityClass.objects.filter(kind=kind, name=name).first()) if name else None
    spec = describe_priority_class(row) if row else None
    shown = PriorityClassForm.initial_of
    form = PriorityClassForm(
        request.POST or None, initial=_start(row, spec, shown(spec)), is_new=row is None
    )
    editing = Editing("priority_class", row, spec, form, shown, form.to_spec, save_priority_class)
    editing.page = "priority-classes"
    return answer(request, editing)
