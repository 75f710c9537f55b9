"""Filters of this room's lists, and the reason that acting on a node asks for."""

from collections.abc import Sequence
from typing import Any, cast

import django_filters
from django import forms
from django.core.validators import MinLengthValidator
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.decimals import WholeField
from gpuplatform.common.narrowing import ALWAYS, unknown_filter, unknown_value
from queues.forms.edits import NAME_HELP, REASON_HELP, REASON_LENGTH
from queues.models import ClusterQueue, Team
from scheduling.checks import ALL_QUEUES, KINDS
from scheduling.engine.terms import PendingReason
from scheduling.models import AdmissionCheck, Workload
from scheduling.models.workloads import STATUS_LABELS
from scheduling.selectors.workloads import in_cluster_queue
from scheduling.specs import CheckSpec

REST_NAMES = {"status": "state", "name": "q", "namespace": "q"}  # how REST calls the filters


class WorkloadFilter(django_filters.FilterSet):  # type: ignore[misc]  # the library is untyped
    """What the workload list can be narrowed to; teams and queues are those of the reader."""

    state = django_filters.ChoiceFilter(
        field_name="status", label=_("State"), choices=STATUS_LABELS, empty_label=_("Any state")
    )
    team = django_filters.ModelChoiceFilter(
        label=_("Team"),
        queryset=Team.objects.none(),
        empty_label=_("Any team"),
        to_field_name="name",
    )
    queue = django_filters.ChoiceFilter(
        label=_("Queue"), method="filter_queue", choices=(), empty_label=_("Any queue")
    )
    reason = django_filters.ChoiceFilter(
        field_name="pending_reason",
        label=_("Waits because"),
        choices=[(reason.value, reason.value) for reason in PendingReason],
        empty_label=_("Any reason"),
    )
    q = django_filters.CharFilter(label=_("Name"), method="filter_text")

    class Meta:
        model = Workload
        fields: list[str] = []

    def __init__(
        self, data: QueryDict, *args: Any, teams: QuerySet[Team], queues: list[str], **kwargs: Any
    ) -> None:
        given = data.copy()
        for other, name in REST_NAMES.items():
            if other in given and not given.get(name):
                given[name] = given.pop(other)[-1]
        super().__init__(given or None, *args, **kwargs)
        self.filters["team"].queryset = teams
        self.filters["queue"].extra["choices"] = [(name, name) for name in queues]
        for field in self.form.fields.values():
            field.widget.attrs["aria-label"] = field.label
        self.form.fields["q"].widget = forms.TextInput(
            attrs={
                "type": "search",
                "placeholder": _("Name or namespace"),
                "aria-label": _("Name"),
            }
        )

    @property
    def told(self) -> str:
        """Return what of the address was not understood; ""."""
        unknown = [name for name in self.data or {} if name not in (*self.filters, *ALWAYS)]
        if unknown:
            return unknown_filter(unknown[0], self.filters)
        for name in self.form.errors:
            field = self.form.fields[name]
            known = [str(value) for value, _label in getattr(field, "choices", ()) if value]
            return unknown_value(name, str(self.data.get(name, "")), known)
        return ""

    @property
    def qs(self) -> QuerySet[Workload]:
        """Return the workloads of the filter; none where it was not understood."""
        return self.queryset.none() if self.told else super().qs  # type: ignore[no-any-return]

    def filter_queue(self, rows: QuerySet[Workload], _name: str, value: str) -> QuerySet[Workload]:
        """Keep the workloads of a cluster queue."""
        return in_cluster_queue(rows, value)

    def filter_text(self, rows: QuerySet[Workload], _name: str, value: str) -> QuerySet[Workload]:
        """Keep the workloads whose name or namespace contains the text."""
        return rows.filter(Q(name__icontains=value) | Q(namespace__icontains=value))


class ReasonForm(forms.Form):
    """Why somebody takes a node out of service or brings it back."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        validators=[MinLengthValidator(REASON_LENGTH)],
        help_text=REASON_HELP,
    )


class ForgetForm(ReasonForm):
    """Which agent is to be forgotten, and why. ``agents``: the names of all there are."""

    agent = forms.ChoiceField(label=_("Agent"))
    field_order = ("agent", "reason")

    def __init__(self, *args: Any, agents: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast("forms.ChoiceField", self.fields["agent"])
        field.choices = [(name, name) for name in agents]


class AnswerForm(forms.Form):
    """What somebody says of work that waits for approval."""

    message = forms.CharField(label=_("Message"), max_length=500, required=False)


def _queue_choices() -> list[tuple[str, Any]]:
    names = ClusterQueue.objects.order_by("name").values_list("name", flat=True)
    return [(ALL_QUEUES, _("all queues")), *((name, name) for name in names)]


def _kind_choices() -> list[tuple[str, Any]]:
    return [(kind.name, kind.label) for kind in KINDS.values()]


class CheckForm(forms.Form):
    """An admission check; ``version`` is that which its editor saw."""

    name = forms.CharField(label=_("Name"), max_length=253, help_text=NAME_HELP)
    kind = forms.ChoiceField(label=_("Who answers"), choices=_kind_choices)
    queues = forms.MultipleChoiceField(
        label=_("Queues"), choices=_queue_choices, widget=forms.CheckboxSelectMultiple
    )
    description = forms.CharField(label=_("What is asked"), max_length=500, required=False)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        validators=[MinLengthValidator(REASON_LENGTH)],
        help_text=REASON_HELP,
    )
    version = WholeField(widget=forms.HiddenInput, required=False)

    def to_spec(self, before: AdmissionCheck | None) -> CheckSpec:
        """Return what was entered; parameters stay as they are."""
        entered = self.cleaned_data
        return CheckSpec(
            entered["name"].strip(),
            entered["kind"],
            tuple(entered["queues"]),
            before.parameters if before else {},
            entered["description"],
        )

    @classmethod
    def of(cls, row: AdmissionCheck) -> "CheckForm":
        """Return the form of a check as it stands."""
        columns = ("name", "kind", "queues", "description", "version")
        return cls(initial={name: getattr(row, name) for name in columns})
