"""Forms of the close board."""

from django import forms
from django.utils.translation import gettext_lazy as _

from finops.forms import REASON_LENGTH
from gpuplatform.common.decimals import AmountField


class StepForm(forms.Form):
    """A step: why, and the hash of the lines that were on the page."""

    reason = forms.CharField(max_length=REASON_LENGTH, required=False)
    seen = forms.CharField(max_length=64, required=False)


class AcknowledgeForm(forms.Form):
    """A finding by its name, and why it may stay as it is."""

    code = forms.CharField(max_length=48)
    subject = forms.CharField(max_length=255, required=False)
    reason = forms.CharField(max_length=REASON_LENGTH, required=False)


class AdjustForm(forms.Form):
    """A line by hand; the rules stand in ``finops.closing.adjusting``."""

    team = forms.CharField(
        label=_("Team"),
        max_length=63,
        required=False,
        help_text=_("Empty is the central account."),
    )
    amount = AmountField(label=_("Amount"), max_digits=14, decimal_places=2)
    original = forms.CharField(
        label=_("Closed month"), max_length=7, required=False, help_text=_("For example 2026-06.")
    )
    original_line = forms.CharField(
        label=_("Line of its bill"),
        max_length=255,
        required=False,
        help_text=_("For example GPU-2026-000001#1."),
    )
    reason = forms.CharField(label=_("Reason"), max_length=REASON_LENGTH)
