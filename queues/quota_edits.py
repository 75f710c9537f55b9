"""Edit the amounts of many queues at once: as a table, or as a file that goes out and comes back.

One check, one transaction, one request id; the rules are those of a single queue's edit. Somebody
else's faster edit is answered with 412 and the values of both sides.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.core.validators import MinLengthValidator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.consequences import carry_out
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.pages import asked, rows_response, wanted_format
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues.access import actor_of, require
from queues.editors import CONFLICT, REFUSED, form_page, unnamed
from queues.forms.cell_files import (
    COLUMNS,
    CellFile,
    CellFileForm,
    cell_rows,
    of_lines,
    read_cells,
)
from queues.forms.cells import MOST_ROWS, SeenRows, filled
from queues.forms.edits import REASON_HELP, REASON_LENGTH, costs_work
from queues.forms.filling import FillForm, fill
from queues.models import ClusterQueue, Cohort, FlavorQuota, Team
from queues.services.cells import save_cells
from queues.specs import CellSpec, CellsSpec
from queues.views import may_edit

GPU = "nvidia.com/gpu"
FILTERS = {
    "cohort": "cluster_queue__cohort__name",
    "team": "cluster_queue__team__name",
    "flavor": "flavor",
}
AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")


class ReasonForm(forms.Form):
    """Why the quotas change, not asked for where nothing is kept; and that others lose by it."""

    confirm = forms.CharField(
        label=_("The name of the queue, or how many queues change, typed out"),
        help_text=_("Asked for where work is evicted, or where less is promised than is held."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        required=False,
    )
    reason = forms.CharField(
        label=_("Reason"),
        widget=forms.Textarea(attrs={"rows": 2}),
        validators=[MinLengthValidator(REASON_LENGTH)],
        help_text=REASON_HELP,
    )

    def unconfirmed(self, found: Iterable[Diagnostic], told: str) -> bool:
        """Return whether the edit costs others work and ``told`` was not typed for it."""
        return costs_work(found) and self.cleaned_data.get("confirm", "").strip() != told


@form_page
@require(may_edit)
def quotas_edit(request: HttpRequest) -> HttpResponse:
    """Show the table, check it, save it; answer it as a file, or take such a file."""
    kept = {name: asked(request, name) for name in FILTERS}
    if request.method != "POST":
        if wanted_format(request):
            cells = cell_rows(_cells(kept).iterator(chunk_size=1_000))
            return rows_response(request, "quotas", COLUMNS, cells)
        rows = _cells(kept).filter(resource=GPU)
        return _show(request, SeenRows(_specs(rows[:MOST_ROWS])), kept, left_out=rows.count())
    if request.FILES or "upload" in request.POST:
        return _take_file(request, kept)
    if "fill" in request.POST:
        return _fill(request, kept)
    return _save(request, kept)


def _save(request: HttpRequest, kept: Mapping[str, str]) -> HttpResponse:
    only_check = "check" in request.POST
    table, reason = SeenRows(_sent(request.POST), request.POST), ReasonForm(request.POST)
    mistakes = _mistakes(table)
    if mistakes or not (only_check or reason.is_valid()):
        return _show(request, table, kept, REFUSED, problems=mistakes, reason=reason)
    wanted = table.wanted()
    names = {cell.queue for cell in wanted}
    told = str(len(names)) if len(names) > 1 else next(iter(names))
    try:
        user, versions = actor_of(request).user, table.versions()
        why = "" if only_check else reason.cleaned_data["reason"]
        saved, found = carry_out(
            CellsSpec(tuple(wanted)),
            lambda: save_cells(wanted, actor=user, reason=why, versions=versions),
            keep=lambda seen: not (only_check or reason.unconfirmed(seen, told)),
        )
    except Stale as error:
        return _show_conflict(request, table, kept, error)
    except Rejected as error:
        problems = [_line(one, table.add_problem(one) or "") for one in error.problems]
        return _show(request, table, kept, REFUSED, problems=problems)
    if only_check:
        return _show(request, table, kept, checked=True, findings=found)
    if reason.unconfirmed(found, told):
        lacking: dict[str, Any] = {"problems": [unnamed(reason, told)], "checked": True}
        return _show(request, table, kept, REFUSED, reason=reason, findings=found, **lacking)
    words = ngettext("%(n)d queue is saved.", "%(n)d queues are saved.", len(saved))
    messages.success(request, words % {"n": len(saved)})
    for diagnostic in found:
        messages.warning(request, f"{diagnostic.sentence} {diagnostic.next_step}".strip())
    return redirect(f"{reverse('quotas-edit')}?{request.GET.urlencode()}".rstrip("?"))


def _fill(request: HttpRequest, kept: Mapping[str, str]) -> HttpResponse:
    """Put one amount into the selected cells of the table; nothing is saved."""
    cells, data = _sent(request.POST), request.POST.copy()
    try:
        amounts = fill(cells, request.POST, request.POST.getlist("pick"))
    except Rejected as error:
        problems = [_line(one, "id_fill-amount") for one in error.problems]
        return _show(request, SeenRows(cells, data), kept, REFUSED, problems=problems)
    for name, text in amounts.items():
        data[name] = text
    table = SeenRows(cells, data)
    table.is_valid()
    return _show(request, table, kept, filled=True)


def _mistakes(table: SeenRows) -> list[dict[str, str]]:
    """Return what is no amount, or that nothing differs."""
    if not table.is_valid():
        return table.mistakes()
    words = gettext("Nothing differs from how it stood.")
    return [] if table.wanted() else [_line(Problem("", "required", words))]


def _take_file(request: HttpRequest, kept: Mapping[str, str]) -> HttpResponse:
    """Show what a file would change as a table; it is applied from there, and not unseen."""
    form = CellFileForm(request.POST, request.FILES)
    try:
        told = read_cells(_file_of(form))
        data = _differences(told)
    except Rejected as error:
        problems = [_line(one) for one in error.problems[:MOST_ROWS]]
        rows = _cells(kept).filter(resource=GPU)
        table, count = SeenRows(_specs(rows[:MOST_ROWS])), rows.count()
        return _show(request, table, kept, REFUSED, problems=problems, left_out=count)
    if not data:
        messages.success(request, gettext("The file says what stands already."))
        return redirect("quotas-edit")
    table = SeenRows(_sent(data), data)
    table.is_valid()
    now = {name: data.get(f"version|{name}") for name in told.versions}
    older = [name for name, seen in told.versions.items() if now[name] not in {None, str(seen)}]
    if older:
        words = gettext("These queues have changed since the file was made: %(names)s.")
        told_words = words % {"names": ", ".join(sorted(older)[:10])}
        conflict = {"words": told_words, "clashes": table.clashes()}
        return _show(request, table, kept, CONFLICT, conflict=conflict)
    return _show(request, table, kept, from_file=True)


def _file_of(form: CellFileForm) -> Any:
    if form.is_valid():
        return form.cleaned_data["file"]
    raise Rejected([Problem("file", "required", gettext("Choose a file."))])


def _differences(told: CellFile) -> dict[str, str]:
    """Return the form that asks for what of a file differs from how things stand.

    Raises:
        Rejected: a cell that is not there or stands twice, or more than a form holds.
    """
    names = {cell.queue for cell in told.cells}
    stand = {cell.place: cell for cell in _specs(_of_queues(names))}
    versions = dict(ClusterQueue.objects.filter(name__in=names).values_list("name", "version"))
    changed = [cell for cell in told.cells if stand.get(cell.place) != cell]
    misplaced = [cell for cell in told.cells if cell.place not in stand]
    if misplaced or len({one.place for one in told.cells}) < len(told.cells):
        try:
            save_cells(told.cells, actor=None)  # refuses, and says which cells
        except Rejected as error:
            raise Rejected(of_lines(told, error.problems)) from error
    if len(changed) > MOST_ROWS:
        words = gettext("%(n)d cells differ; at most %(most)d are changed at once.")
        said = words % {"n": len(changed), "most": MOST_ROWS}
        raise Rejected([Problem("file", "OUT_OF_RANGE", said)])
    data: dict[str, str] = {}
    for cell in changed:
        data |= filled(cell, stand[cell.place])
        data[f"version|{cell.queue}"] = str(versions[cell.queue])
    return data


def _show_conflict(
    request: HttpRequest, table: SeenRows, kept: Mapping[str, str], error: Stale
) -> HttpResponse:
    """Show both sides; the form holds what was changed here, and applies to what is current."""
    conflict = {"words": " ".join(one.message for one in error.problems)}
    conflict["clashes"] = table.clashes()  # type: ignore[assignment]
    carried = request.POST.copy()
    carried.update(table.merged())
    queues = {form.cell.queue for form in table.forms}
    rows = ClusterQueue.objects.filter(name__in=queues).values_list("name", "version")
    carried.update({f"version|{name}": str(version) for name, version in rows})
    merged = SeenRows([form.cell for form in table.forms], carried)
    merged.is_valid()
    return _show(request, merged, kept, CONFLICT, conflict=conflict)


def _show(
    request: HttpRequest,
    table: SeenRows,
    kept: Mapping[str, str],
    status: int = 200,
    *,
    left_out: int = 0,
    reason: ReasonForm | None = None,
    **more: Any,
) -> HttpResponse:
    queues = {form.cell.queue for form in table.forms}
    rows = ClusterQueue.objects.filter(name__in=queues).values_list("name", "version")
    sent = request.POST if "conflict" not in more else {}
    context = {
        "cells": table,
        "reason": reason or ReasonForm(initial={"reason": request.POST.get("reason", "")}),
        "versions": {name: sent.get(f"version|{name}") or version for name, version in rows},
        "file": CellFileForm(),
        "fill": FillForm(request.POST if "fill" in request.POST else None),
        "picked": request.POST.getlist("pick"),
        "kept": kept,
        "left_out": max(0, left_out - MOST_ROWS),
        "cohorts": Cohort.objects.order_by("name").values_list("name", flat=True),
        "teams": Team.objects.order_by("name").values_list("name", flat=True),
    }
    return render(request, "queues/quotas_form.html", context | more, status=status)


def _cells(kept: Mapping[str, str]) -> QuerySet[FlavorQuota]:
    """Return the cells of queues that a filter keeps, by cohort and queue."""
    rows = FlavorQuota.objects.filter(cluster_queue__isnull=False)
    rows = rows.filter(**{FILTERS[name]: value for name, value in kept.items() if value})
    order = (
        "cluster_queue__cohort__name",
        "cluster_queue__name",
        "group",
        "flavor_position",
        "id",
    )
    return rows.select_related("cluster_queue__cohort", "cluster_queue__team").order_by(*order)


def _of_queues(names: Iterable[str]) -> QuerySet[FlavorQuota]:
    return _cells({}).filter(cluster_queue__name__in=names)


def _specs(rows: Iterable[FlavorQuota]) -> list[CellSpec]:
    return [
        CellSpec(
            row.cluster_queue.name if row.cluster_queue else "",
            row.flavor,
            row.resource,
            *(getattr(row, name) for name in AMOUNTS),
        )
        for row in rows
    ]


def _sent(data: Mapping[str, Any]) -> list[CellSpec]:
    """Return the cells that a form is about, as they stand now; those gone meanwhile are left."""
    places = {
        tuple(key[: -len("-nominal")].split("|")) for key in data if key.endswith("-nominal")
    }
    names = {place[0] for place in places}
    return [cell for cell in _specs(_of_queues(names)) if cell.place in places]


def _line(problem: Problem, field: str = "") -> dict[str, str]:
    line = {"code": problem.code, "path": problem.path, "message": problem.message}
    return {"field": field, **line}
