"""The form of a new team: the forms of its parts, and how what was typed becomes a plan."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.crypto import get_random_string
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from finops.budget_forms import BudgetForm
from finops.budgets.saving import BudgetSpec
from gpuplatform.common.problems import Problem
from gpuplatform.doors.onboarding.plans import Door, Place, Plan
from queues import pages
from queues.choices import TeamRole
from queues.forms import TeamForm, add_problems, form_problems, quota_rows
from queues.forms.edits import NAME_HELP, Choices, choose
from queues.forms.promises import RECOMMENDED_QUEUE
from queues.models import ClusterQueue, User
from queues.people import LETTER_COUNT, LETTERS
from queues.specs import ClusterQueueSpec, PersonSpec

ROWS, MOST_ROWS, MOST_NAMES = 3, 50, 200
NO_QUEUE, NEW_QUEUE, FREE_QUEUE = "none", "new", "free"
LONGEST_NAME = 63
_ROW = re.compile(r"(people|doors)\[(\d+)\]\.(\w+)")


class PersonRow(forms.Form):
    """Somebody who gets a role in the team: there already, or made with it."""

    username = forms.CharField(label=_("User name"), required=False, max_length=150)
    role = forms.ChoiceField(label=_("Role"), choices=TeamRole.choices, initial=TeamRole.LEAD)
    is_new = forms.BooleanField(label=_("New person"), required=False)
    first_name = forms.CharField(label=_("First name"), required=False)
    last_name = forms.CharField(label=_("Last name"), required=False)
    email = forms.CharField(label=_("E-mail"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = field.label
        more = {"list": "usernames", "autocomplete": "off"}
        self.fields["username"].widget.attrs.update(more)

    def clean(self) -> dict[str, Any]:
        """Ask for the user name where anything else is said, and lose no name that is typed."""
        data = dict(super().clean() or {})
        named = [name for name in ("first_name", "last_name", "email") if data.get(name)]
        if not data.get("username") and "username" not in self.errors:
            if named or data.get("is_new"):
                self.add_error("username", gettext("choose a user name"))
            return data
        if named and not data.get("is_new"):
            words = gettext("tick this to make the person, or empty the names")
            self.add_error("is_new", words)
        return data

    def place(self) -> Place | None:
        """Return what was asked for; None of an empty row."""
        data = self.cleaned_data
        if not data.get("username"):
            return None
        if not data["is_new"]:
            return Place(data["username"], data["role"])
        names = (data["username"], data["first_name"], data["last_name"], data["email"])
        password = get_random_string(LETTER_COUNT, LETTERS)
        return Place(data["username"], data["role"], PersonSpec(*names), password)


class DoorRow(forms.Form):
    """A namespace of the team, and the local queue in it."""

    namespace = forms.CharField(label=_("Namespace"), required=False, max_length=253)
    local_queue = forms.CharField(label=_("Local queue"), required=False, max_length=253)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = field.label

    def clean(self) -> dict[str, Any]:
        """Ask where a local queue should stand."""
        data = dict(super().clean() or {})
        if data.get("local_queue") and not data.get("namespace"):
            self.add_error("namespace", gettext("say in which namespace"))
        return data

    def door(self) -> Door | None:
        """Return what was asked for; None of an empty row."""
        data = self.cleaned_data
        return Door(data["namespace"], data["local_queue"]) if data.get("namespace") else None


class QueueChoice(forms.Form):
    """Which queue the team's quota stands in."""

    which = forms.ChoiceField(
        label=_("Queue"),
        initial=NEW_QUEUE,
        choices=[
            (NEW_QUEUE, _("a new one, with the recommended defaults")),
            (FREE_QUEUE, _("one that belongs to nobody yet")),
            (NO_QUEUE, _("none yet")),
        ],
    )
    name = forms.CharField(label=_("Name of the new one"), required=False, help_text=NAME_HELP)
    cohort = forms.ChoiceField(
        label=_("Cohort"), required=False, help_text=_("Queues of a cohort lend to each other.")
    )
    free = forms.ChoiceField(label=_("The one that is there"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        nothing = _("no cohort: it neither borrows nor lends")
        choose(self, "cohort", [("", nothing), *pages.cohort_choices()])
        names = ClusterQueue.objects.filter(team=None).order_by("name")
        free = [(name, name) for name in names.values_list("name", flat=True)]
        choose(self, "free", [("", "-"), *free])

    def clean(self) -> dict[str, Any]:
        """Ask for the name that the choice needs, and lose none beside another choice."""
        data = dict(super().clean() or {})
        needed = {NEW_QUEUE: "name", FREE_QUEUE: "free"}.get(data.get("which", ""), "")
        if needed and not data.get(needed) and needed not in self.errors:
            self.add_error(needed, gettext("say which queue"))
        for other in {"name", "free"} - {needed}:
            if data.get(other) and not self.errors:
                self.add_error("which", gettext("choose the queue that is named below"))
        return data


class MonthlyBudget(BudgetForm):
    """The team's budget of a month, in money; no limit is no budget."""

    def __init__(self, data: Any = None, prefix: str = "") -> None:
        super().__init__(data=data, prefix=prefix)
        for name in set(self.fields) - {"limit", "thresholds", "is_hard"}:
            del self.fields[name]
        self.fields["limit"].required = False
        self.fields["limit"].help_text = _("A month, in the currency of the bills; none if empty.")

    def of_team(self, team: str) -> BudgetSpec | None:
        """Return what was asked for; None without a limit."""
        data = self.cleaned_data
        if data["limit"] is None:
            return None
        name = f"{team}-month"[-LONGEST_NAME:].lstrip("-")
        said = {"is_hard": data["is_hard"], "thresholds": data["thresholds"]}
        return BudgetSpec(name, "team", team, "money", data["limit"], **said)


if TYPE_CHECKING:  # generic for the type checker only
    _Rows = forms.BaseFormSet[forms.Form]
else:
    _Rows = forms.BaseFormSet


def _rows(form: type[forms.Form], prefix: str, data: Any) -> Any:
    factory = forms.formset_factory(
        form, formset=_Rows, extra=ROWS, max_num=MOST_ROWS, absolute_max=MOST_ROWS
    )
    return factory(data, prefix=prefix)


class OnboardingForm:
    """All forms of the page; each part is judged by itself."""

    def __init__(self, data: Any = None) -> None:
        self.team = TeamForm(data, is_new=True)
        self.people = _rows(PersonRow, "people", data)
        if data is None:  # the first row is the lead; who follows is a member unless said
            for row in self.people.forms[1:]:
                row.initial["role"] = TeamRole.MEMBER
        self.doors = _rows(DoorRow, "doors", data)
        self.queue = QueueChoice(data, prefix="queue")
        self.quotas = quota_rows(pages.flavor_choices(), data, (), pages.resource_choices())
        self.budget = MonthlyBudget(data, prefix="budget")
        self.usernames: Choices = [
            (user.username, user.get_full_name())
            for user in User.objects.filter(is_active=True).order_by("username")[:MOST_NAMES]
        ]

    def all(self) -> Iterable[forms.Form]:
        """Return every form of the page, in the order in which they stand there."""
        rows = [*self.people.forms, *self.doors.forms]
        return [self.team, *rows, self.queue, *self.quotas.forms, self.budget]

    def mistakes(self) -> list[dict[str, str]]:
        """Return what is wrong in shape, each with the id of its field."""
        for rows in (self.people, self.doors, self.quotas):
            rows.is_valid()
        return form_problems(*self.all())

    def plan(self) -> Plan:
        """Return what is asked for by the parts whose shape is right."""
        team = self.team.to_spec() if self.team.is_valid() else None
        name = team.name if team else ""
        people = {n: row.place() for n, row in enumerate(self.people.forms) if row.is_valid()}
        doors = {n: row.door() for n, row in enumerate(self.doors.forms) if row.is_valid()}
        chosen = self.queue.cleaned_data if self.queue.is_valid() else {"which": ""}
        return Plan(
            team,
            {n: place for n, place in people.items() if place},
            {n: door for n, door in doors.items() if door},
            self._new_queue(chosen),
            chosen["free"] if chosen["which"] == FREE_QUEUE else "",
            chosen["which"] == NO_QUEUE,
            self.budget.of_team(name) if self.budget.is_valid() else None,
        )

    def _new_queue(self, chosen: dict[str, Any]) -> ClusterQueueSpec | None:
        if chosen["which"] != NEW_QUEUE or not self.quotas.is_valid():
            return None
        groups, cohort = self.quotas.groups(), chosen["cohort"] or None
        return replace(RECOMMENDED_QUEUE, name=chosen["name"], cohort=cohort, groups=groups)

    def place(self, problems: Iterable[Problem]) -> list[dict[str, str]]:
        """Put each problem of a plan at its field; return them for the summary."""
        return [line for problem in problems for line in self._place(problem)]

    def _place(self, problem: Problem) -> list[dict[str, str]]:
        part, _dot, rest = problem.path.partition(".")
        own = replace(problem, path=rest)
        if row := _ROW.match(problem.path):
            form = getattr(self, row[1]).forms[int(row[2])]
            own = replace(problem, path=row[3] if row[3] in form.fields else "username")
            found = add_problems(form, [own])
        elif part == "queue":
            found = add_problems(self.queue, [self._of_queue(own)], self.quotas.add_problem)
        elif part == "budget":
            named = own if rest in self.budget.fields else replace(own, path="limit")
            found = add_problems(self.budget, [named])
        else:
            found = add_problems(self.team, [own])
        return [line | {"path": problem.path} for line in found]

    def _of_queue(self, problem: Problem) -> Problem:
        """Return a problem at the field in which the chosen queue is named."""
        is_free = self.queue.cleaned_data.get("which") == FREE_QUEUE
        if is_free and problem.path == "name":
            return replace(problem, path="free")
        known = problem.path in self.queue.fields or problem.path.startswith("groups")
        return problem if known else replace(problem, path="which")
