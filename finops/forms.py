"""Forms of money: a price, what a node costs, who pays for idle GPUs."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from finops.allocation.money import InvalidFieldError
from finops.allocation.node_price import NodeCost
from finops.models.bills import IdlePolicy
from finops.models.prices import PriceUnit
from finops.selectors.prices import flavor_names
from finops.specs import EVERY_FLAVOR, PriceSpec
from gpuplatform.common import clock
from gpuplatform.common.days import InstantField
from gpuplatform.common.decimals import AmountField, WholeField

REASON_LENGTH = 500


def flavor_choices() -> list[tuple[str, str]]:
    """Return the flavors that a price can be of, the price for every flavor first."""
    return [
        (name, gettext("every flavor without its own") if name == EVERY_FLAVOR else name)
        for name in flavor_names()
    ]


class PriceForm(forms.Form):
    """A new price. What is already in force is not edited; it ends where this one starts."""

    # The only unit that bills are made from so far; other prices come in by import.
    unit = forms.ChoiceField(
        choices=[(PriceUnit.GPU_HOUR.value, PriceUnit.GPU_HOUR.label)],
        initial=PriceUnit.GPU_HOUR.value,
        widget=forms.HiddenInput,
    )
    # Not a ChoiceField: the rule of every door says what is wrong with an unknown flavor.
    subject = forms.CharField(
        label=_("Flavor"),
        max_length=253,
        help_text=_("A price for every flavor holds where a flavor has none of its own."),
    )
    amount = AmountField(
        label=_("Price of a GPU-hour"), max_digits=18, decimal_places=8, min_value=0
    )
    valid_from = InstantField(
        label=_("Valid from, UTC"), required=False, help_text=_("Empty starts now.")
    )
    valid_to = InstantField(
        label=_("Valid until, UTC"),
        required=False,
        help_text=_("Empty goes on until another price follows."),
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=REASON_LENGTH, widget=forms.Textarea(attrs={"rows": 2})
    )
    source = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["subject"].widget = forms.Select(choices=flavor_choices())
        label = _("Price of a GPU-hour, {currency}").format(currency=settings.CURRENCY)
        self.fields["amount"].label = label

    def spec(self) -> PriceSpec:
        """Return the price that the valid form asks for."""
        cleaned = self.cleaned_data
        return PriceSpec(
            unit=cleaned["unit"],
            subject=cleaned["subject"],
            amount=cleaned["amount"],
            currency=settings.CURRENCY,
            valid_from=cleaned["valid_from"],
            valid_to=cleaned["valid_to"],
            source=cleaned["source"] or "declared",
            note=cleaned["reason"],
        )


class PriceEndForm(forms.Form):
    """When a price, mapping or shared cost ends, without another that follows it."""

    valid_to = InstantField(
        label=_("Ends at, UTC"), required=False, help_text=_("Empty ends it now.")
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=REASON_LENGTH, widget=forms.Textarea(attrs={"rows": 2})
    )

    def __init__(self, *args: Any, begins_at: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_coming = begins_at > clock.now()
        if self.is_coming:
            words = _("Empty takes it back: it has not begun, and what was before it goes on.")
            self.fields["valid_to"].help_text = words


class NodeCostForm(forms.Form):
    """What a node costs to own and run; the defaults are the node of the articles."""

    purchase_price = AmountField(label=_("Purchase price"), min_value=0, max_digits=14)
    years = AmountField(label=_("Written off over, years"), max_digits=6)
    availability = AmountField(
        label=_("Availability"),
        max_digits=6,
        help_text=_("Part of the time it can be sold: 0.9 is 90 %."),
    )
    gpus = WholeField(label=_("GPUs"), min_value=1, max_value=1024)
    watts_per_gpu = AmountField(label=_("Watts per GPU"), min_value=0, max_digits=8)
    pue = AmountField(
        label=_("PUE"), max_digits=6, help_text=_("Power of the site over power of the machines.")
    )
    kwh_price = AmountField(label=_("Price of a kWh"), min_value=0, max_digits=10)
    operations_per_hour = AmountField(label=_("Operations per hour"), min_value=0, max_digits=12)
    flavor = forms.CharField(label=_("Compare with the price of"), max_length=253)
    tokens_per_second = AmountField(
        label=_("Tokens per second"), min_value=1, max_digits=10, required=False
    )

    ARTICLE = {
        "purchase_price": "140000",
        "years": "4",
        "availability": "0.9",
        "gpus": "4",
        "watts_per_gpu": "700",
        "pue": "1.4",
        "kwh_price": "0.12",
        "operations_per_hour": "0.70",
        "tokens_per_second": "2000",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["flavor"].widget = forms.Select(choices=flavor_choices())

    def clean(self) -> dict[str, Any]:
        """Let the pure calculator judge what single fields cannot."""
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                cleaned["cost"] = self._cost(cleaned)
            except InvalidFieldError as error:
                self.add_error(error.field, error.message)
        return cleaned

    @classmethod
    def article_cost(cls) -> NodeCost:
        """Return what the node of the articles costs."""
        numbers: dict[str, Any] = {name: Decimal(text) for name, text in cls.ARTICLE.items()}
        return cls._cost(numbers | {"gpus": int(cls.ARTICLE["gpus"])})

    @staticmethod
    def _cost(cleaned: dict[str, Any]) -> NodeCost:
        names = ("purchase_price", "years", "availability", "watts_per_gpu", "pue", "kwh_price")
        amounts: dict[str, Decimal] = {name: cleaned[name] for name in names}
        return NodeCost(
            **amounts,
            gpus=cleaned["gpus"],
            operations_per_hour=cleaned["operations_per_hour"],
        )


class TokenCostForm(forms.Form):
    """What a million tokens cost on a node that is busy all the time."""

    node_hour = AmountField(
        label=_("Cost of the deployment's GPUs per hour"), min_value=0, max_digits=14
    )
    tokens_per_second = AmountField(
        label=_("Tokens per second at full load"), min_value=1, max_digits=10
    )


class IdlePolicyForm(forms.Form):
    """Who pays for idle GPUs of a month; ``seen`` is the version of its rules on the page."""

    idle_policy = forms.ChoiceField(label=_("Idle policy"), choices=IdlePolicy.choices)
    reason = forms.CharField(label=_("Reason"), max_length=REASON_LENGTH)
    seen = WholeField(widget=forms.HiddenInput)
