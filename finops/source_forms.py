"""Forms of sources: one to read, a test, a load, a judgement."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from django import forms
from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from finops.forms import REASON_LENGTH
from finops.models import Source
from finops.models.sources import SourceKind
from finops.source_rules import NO_ADDRESS
from finops.specs import OPTIONS, SourceSpec
from gpuplatform.common.days import DayField
from gpuplatform.common.decimals import WholeField

LABELS: Mapping[str, str | Promise] = {
    "label_keys": _("Labels that tell cost apart"),
    "annotation_keys": _("Annotations that tell cost apart"),
    "by_node": _("Tell nodes apart"),
    "resolution": _("Resolution"),
    "node_label": _("Label with the node's name"),
    "step_s": _("Seconds between two samples"),
    "team_label": _("Label with the team"),
    "idle_below_percent": _("Idle below (percent of use)"),
    "idle_after_s": _("Idle after (seconds)"),
}
HELP: Mapping[str, str | Promise] = {
    "label_keys": _("Keys with commas, as on the pods, such as equipo."),
    "annotation_keys": _("Keys with commas, as on the pods, such as finops.io/equipo."),
    "by_node": _("Needed where idle is split node by node."),
    "resolution": _("Of its Prometheus queries, such as 1m. Empty leaves it to OpenCost."),
    "node_label": _("As the exporter of DCGM writes it."),
    "step_s": _("From 15 to 3,600."),
    "team_label": _("Of kube_pod_labels, for the questions of a test."),
    "idle_below_percent": _("A GPU that a pod holds and uses less than this, from 0 to 100 ..."),
    "idle_after_s": _(
        "... for so long at least, from 60 to 86,400, counts as allocated but idle."
    ),
}


class SourceForm(forms.Form):
    """A source of one kind. Its secret is no field: it stands in the environment only."""

    name = forms.CharField(
        label=_("Name"),
        max_length=63,
        help_text=_("Lower-case letters, digits and dashes; it never changes."),
    )
    url = forms.CharField(
        label=_("Address"),
        max_length=500,
        required=False,
        help_text=_("Such as http://opencost.example.org:9003. The host must be in SOURCE_HOSTS."),
    )
    cluster = forms.CharField(
        label=_("Cluster or gateway"),
        max_length=253,
        required=False,
        help_text=_("What it tells about; empty is the only one there is."),
    )
    currency = forms.CharField(
        label=_("Currency"),
        max_length=3,
        help_text=_("Three letters, like EUR. What its numbers are in, whatever it calls them."),
    )
    first_day = DayField(
        label=_("First day"),
        required=False,
        widget=forms.DateInput(attrs={"placeholder": "2026-06-01"}, format="%Y-%m-%d"),
        help_text=_("Empty: the first of this month."),
    )
    enabled = forms.BooleanField(label=_("Load it every night"), required=False, initial=True)
    seen = WholeField(required=False, widget=forms.HiddenInput)
    reason = forms.CharField(
        label=_("Reason"), max_length=REASON_LENGTH, widget=forms.Textarea(attrs={"rows": 2})
    )

    def __init__(
        self, kind: str, standing: Source | None = None, data: Any = None, **more: Any
    ) -> None:
        super().__init__(data, initial=_initial(kind, standing), **more)
        self.kind = kind
        self.standing = standing
        if kind in NO_ADDRESS:
            del self.fields["url"]
        if standing is not None:
            self.fields["name"].widget = forms.HiddenInput()
            self.fields["seen"].required = True
        for name, default in OPTIONS[kind].items():
            self.fields[name] = _field(name, default)
        self.order_fields([name for name in self.fields if name not in {"enabled", "reason"}])

    def version(self) -> int | None:
        """Return the version that was seen; 0 of a new source."""
        seen: int | None = self.cleaned_data["seen"]
        return seen if self.standing else 0

    def spec(self) -> SourceSpec:
        """Return the source that the valid form asks for."""
        cleaned = self.cleaned_data
        options = {
            name: _option(cleaned[name], default) for name, default in OPTIONS[self.kind].items()
        }
        return SourceSpec(
            name=self.standing.name if self.standing else cleaned["name"],
            kind=self.kind,
            url=cleaned.get("url", ""),
            cluster=cleaned["cluster"],
            currency=cleaned["currency"].upper(),
            options=options,
            first_day=cleaned["first_day"],
            enabled=cleaned["enabled"],
        )


class ReasonForm(forms.Form):
    """Why a reading is accepted or rejected."""

    reason = forms.CharField(label=_("Reason"), max_length=REASON_LENGTH)


class DayForm(forms.Form):
    """A day to load by hand."""

    day = DayField(
        label=_("Day"),
        widget=forms.DateInput(attrs={"placeholder": "2026-06-01"}, format="%Y-%m-%d"),
    )


def kinds() -> list[tuple[str, str | Promise]]:
    """Return the kinds of sources with their names."""
    return list(SourceKind.choices)


def _initial(kind: str, standing: Source | None) -> dict[str, Any]:
    if standing is None:
        return {"currency": settings.CURRENCY} | _shown(OPTIONS[kind])
    names = ("name", "url", "cluster", "currency", "enabled")
    first: date = standing.first_day
    return {
        **{name: getattr(standing, name) for name in names},
        "first_day": first,
        "seen": standing.version,
        **_shown({**OPTIONS[kind], **standing.options}),
    }


def _shown(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: ", ".join(value) if isinstance(value, list | tuple) else value
        for name, value in options.items()
    }


def _field(name: str, default: Any) -> forms.Field:
    words: dict[str, Any] = {"label": LABELS[name], "help_text": HELP[name], "required": False}
    if isinstance(default, bool):
        return forms.BooleanField(**words)
    if isinstance(default, int):
        return WholeField(**words)
    return forms.CharField(max_length=2000, **words)


def _option(value: Any, default: Any) -> Any:
    """Return a typed value as the option is; an empty one is the default."""
    if isinstance(default, tuple):
        return [part.strip() for part in value.split(",") if part.strip()]
    return default if value in (None, "") else value
