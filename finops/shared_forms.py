"""Forms of what all teams carry, and of the rules of a month; both only shape what is typed."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from finops import choosing, rule_words
from finops.forms import REASON_LENGTH
from finops.models.shared_costs import SharingMethod
from finops.shared_costs import SharedSpec
from gpuplatform.common.days import InstantField
from gpuplatform.common.decimals import AmountField, WholeField
from gpuplatform.common.money import parse_decimal


class PartsField(forms.CharField):
    """What each team carries, a line each: ``datos 60``."""

    widget = forms.Textarea(attrs={"rows": 3, "placeholder": "datos 60\nia 40"})

    def clean(self, value: Any) -> Any:
        """Return the percentages by team."""
        lines = [line.replace("%", " ").split() for line in str(super().clean(value)).splitlines()]
        parts: dict[str, Decimal] = {}
        for words in filter(None, lines):
            number = _number(words[-1])
            if len(words) != 2 or number is None:  # noqa: PLR2004  # a team and its number
                said = gettext("Each line is a team and its percentage, like: datos 60")
                raise forms.ValidationError(said)
            if words[0] in parts:
                raise forms.ValidationError(
                    gettext("{team} stands there twice.").format(team=words[0][:63])
                )
            parts[words[0]] = number
        return parts


def _number(text: str) -> Decimal | None:
    try:
        return parse_decimal(text)
    except ValueError:
        return None


class SharedCostForm(forms.Form):
    """A shared cost; the one in force of its name ends where this one starts."""

    name = forms.CharField(
        label=_("Name"),
        max_length=63,
        help_text=_("Lower-case letters, digits and dashes, like rent. Stands on every bill."),
    )
    amount = AmountField(
        label=_("Amount of a month"),
        max_digits=14,
        decimal_places=2,
        required=False,
        help_text=_("Either an amount, or a namespace whose cost is passed on."),
    )
    namespace = forms.CharField(label=_("Namespace"), max_length=253, required=False)
    cluster = forms.CharField(
        label=_("Cluster of the namespace"),
        max_length=253,
        required=False,
        help_text=_("Empty is every cluster."),
    )
    method = forms.ChoiceField(
        label=_("Shared"), choices=SharingMethod.choices, initial=SharingMethod.EVEN.value
    )
    percentages = PartsField(
        label=_("Percentages"),
        required=False,
        help_text=_("With fixed percentages only: a line for each team, 100 together."),
    )
    valid_from = InstantField(
        label=_("From, UTC"), required=False, help_text=_("Empty starts now.")
    )
    valid_to = InstantField(
        label=_("Until, UTC"), required=False, help_text=_("Empty goes on until another follows.")
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=REASON_LENGTH, widget=forms.Textarea(attrs={"rows": 2})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        label = _("Amount of a month, {currency}").format(currency=settings.CURRENCY)
        self.fields["amount"].label = label
        # Another name would be another cost, beside the one that was to be changed.
        self.fields["name"].disabled = bool(self.initial.get("name"))

    def spec(self) -> SharedSpec:
        """Return the shared cost that the valid form asks for."""
        fields = {name: value for name, value in self.cleaned_data.items() if name != "reason"}
        return SharedSpec(**fields, note=self.cleaned_data["reason"])


class RulesForm(forms.Form):
    """The rules of a month but for its idle policy, as they are in force."""

    seen = WholeField(widget=forms.HiddenInput)  # the version that was on the page

    def __init__(self, standing: Mapping[str, str], version: int, data: Any = None) -> None:
        super().__init__(data, initial={**standing, "seen": version})
        for name, words in choosing.WORDS.items():
            rule = rule_words.RULES[name]
            choices = [(word, rule.options.get(word, word)) for word in words]
            self.fields[name] = forms.ChoiceField(
                label=str(rule.label), help_text=str(rule.help), choices=choices
            )
        for name in choosing.NUMBERS:
            rule = rule_words.RULES[name]
            self.fields[name] = forms.CharField(
                label=str(rule.label), help_text=str(rule.help), max_length=32
            )
        self.fields["reason"] = forms.CharField(label=_("Reason"), max_length=REASON_LENGTH)

    def wanted(self) -> dict[str, str]:
        """Return the choices that the valid form asks for."""
        return {name: self.cleaned_data[name] for name in (*choosing.WORDS, *choosing.NUMBERS)}
