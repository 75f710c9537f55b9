"""The page on which many workloads are acted on at once: first told, then done, each answered."""

from typing import Any
from uuid import UUID

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from queues.access import Actor, actor_of, demand, require, visible
from queues.models import ClusterQueue, Team
from scheduling.acting import MOST, WORDS, Act, Answer, act_on
from scheduling.engine.terms import Status
from scheduling.forms import WorkloadFilter
from scheduling.models import Workload
from scheduling.selectors import workloads

REFUSED = 422


class ManyForm(forms.Form):
    """What is to be done, and why; the reason stands in the audit trail of each."""

    act = forms.ChoiceField(choices=[(act.value, words) for act, words in WORDS.items()])
    reason = forms.CharField(label=_("Reason"), max_length=500, required=False)


@require_POST
@require()
def workloads_act(request: HttpRequest) -> HttpResponse:
    """Tell what an act would do to the workloads that were chosen; with ``confirm``, do it."""
    actor, form = actor_of(request), ManyForm(request.POST)
    if not form.is_valid():
        return _refuse(request, gettext("Choose what is to be done."))
    rows = _chosen(request, actor)
    if not rows and request.POST.getlist("uid"):
        raise Http404
    if not rows:
        return _refuse(request, gettext("Select at least one workload."))
    if len(rows) > MOST:
        words = gettext("At most %(most)d workloads are acted on at once; narrow the filter.")
        return _refuse(request, words % {"most": MOST})
    act, keep = Act(form.cleaned_data["act"]), "confirm" in request.POST
    mine = [row for row in rows if actor.may_submit(row.team_id)]
    demand(bool(mine))
    told = act_on(mine, act, actor=actor.user, reason=form.cleaned_data["reason"], keep=keep)
    foreign = gettext("only members of its team and admins may do this")
    told += [Answer(row, False, foreign) for row in rows if row not in mine]
    context = {
        "act": act,
        "form": form,
        "label": WORDS[act],
        "answers": sorted(told, key=lambda one: (not one.is_refused, one.done)),
        "done": [one for one in told if one.done],
        "same": [one for one in told if not one.done and not one.is_refused],
        "refused": [one for one in told if one.is_refused],
        "kept": keep,
    }
    return render(request, "scheduling/many.html", context)


def _chosen(request: HttpRequest, actor: Actor) -> list[Workload]:
    """Return the workloads that were ticked, or all that the filter keeps and have not ended.

    What the reader does not see is not there. One more than is allowed is read at most.
    """
    rows = workloads.workload_rows(actor)
    if request.POST.get("all"):
        rows = _filtered(request, actor, rows).exclude(status=Status.FINISHED)
    else:
        rows = rows.filter(uid__in=_uids(request.POST.getlist("uid")))
    return list(rows[: MOST + 1])


def _filtered(request: HttpRequest, actor: Actor, rows: Any) -> Any:
    teams = visible(Team.objects.all(), actor, "pk")
    queues = visible(ClusterQueue.objects.all(), actor).order_by("name")
    names = list(queues.values_list("name", flat=True))
    return WorkloadFilter(request.GET, queryset=rows, teams=teams, queues=names).qs


def _uids(texts: list[str]) -> list[UUID]:
    found = []
    for text in texts[: MOST + 1]:
        try:
            found.append(UUID(text))
        except ValueError:
            continue
    return found


def _refuse(request: HttpRequest, words: str) -> HttpResponse:
    return render(request, "scheduling/many.html", {"words": words}, status=REFUSED)
