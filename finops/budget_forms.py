"""The editor of budgets; the rules stand in ``finops.budgets.saving``."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from finops.budgets.saving import BudgetSpec
from finops.forms import REASON_LENGTH
from finops.models import Budget
from finops.models.budgets import BudgetMeasure, BudgetScope, usual_thresholds
from gpuplatform.common.decimals import AmountField, WholeField
from queues.models import Team


class BudgetForm(forms.Form):
    """A budget; ``seen`` is the version that was on the page."""

    name = forms.CharField(
        label=_("Name"),
        max_length=63,
        help_text=_("Lower-case letters, digits and dashes, like vision-month."),
    )
    scope = forms.ChoiceField(label=_("Of a"), choices=BudgetScope.choices, initial="team")
    team = forms.ModelChoiceField(
        label=_("Team"),
        queryset=Team.objects.order_by("display_name", "name"),
        to_field_name="name",
        required=False,
        help_text=_("Of a team's budget."),
    )
    subject = forms.CharField(
        label=_("Key, model or tag"),
        max_length=255,
        required=False,
        help_text=_("Alias of the key, model group, or tag: of a budget that is not a team's."),
    )
    measure = forms.ChoiceField(label=_("Counts"), choices=BudgetMeasure.choices, initial="money")
    limit = AmountField(label=_("Limit"), min_value=0, max_digits=20, decimal_places=6)
    duration = forms.CharField(
        label=_("Window"),
        max_length=16,
        initial="1mo",
        help_text=_("LiteLLM's words: 1mo or 30d is a calendar month, 7d begins on Monday."),
    )
    thresholds = forms.CharField(
        label=_("Thresholds, %"), max_length=64, initial=", ".join(map(str, usual_thresholds()))
    )
    is_hard = forms.BooleanField(
        label=_("Hard: no new work of the team starts when it is gone"),
        required=False,
        help_text=_("In queues that have an admission check of the kind budget."),
    )
    note = forms.CharField(label=_("Note"), max_length=500, required=False)
    seen = WholeField(required=False, widget=forms.HiddenInput)
    reason = forms.CharField(label=_("Reason"), max_length=REASON_LENGTH)

    def __init__(self, standing: Budget | None = None, **kwargs: Any) -> None:
        if standing:
            names = ("name", "scope", "subject", "measure", "limit", "duration", "is_hard", "note")
            initial = {name: getattr(standing, name) for name in names}
            thresholds = ", ".join(map(str, standing.thresholds))
            more = {"thresholds": thresholds, "seen": standing.version}
            if standing.team:
                more |= {"team": standing.team.name, "subject": ""}
            kwargs["initial"] = {**initial, **more}
        super().__init__(**kwargs)
        if standing:
            self.fields["name"].disabled = True
            self.fields["seen"].required = True

    def clean_thresholds(self) -> tuple[int, ...]:
        """Return the percentages."""
        parts = self.cleaned_data["thresholds"].replace(",", " ").split()
        if not all(part.isascii() and part.isdigit() for part in parts):
            raise forms.ValidationError(_("Whole percentages, like 50, 80, 100."))
        return tuple(int(part) for part in parts)

    def clean(self) -> dict[str, Any]:
        """Ask for the team where it is a team's budget."""
        found = super().clean() or self.cleaned_data
        is_of_team = found.get("scope") == BudgetScope.TEAM
        if is_of_team and not (found.get("team") or found.get("subject")):
            self.add_error("team", _("Choose the team."))
        return found

    def spec(self) -> BudgetSpec:
        """Return what was entered; a team that was chosen goes before one that was typed."""
        plain = {k: v for k, v in self.cleaned_data.items() if k not in {"seen", "reason", "team"}}
        team = self.cleaned_data["team"]
        if team is not None and plain["scope"] == BudgetScope.TEAM:
            plain["subject"] = team.name
        return BudgetSpec(**plain)

    def version(self) -> int | None:
        """Return the version that was seen."""
        seen: int | None = self.cleaned_data["seen"]
        return seen


class BudgetEndForm(forms.Form):
    """Why a budget is taken away, and the version that was on the page."""

    reason = forms.CharField(max_length=REASON_LENGTH)
    seen = WholeField()
