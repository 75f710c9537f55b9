"""Forms of teams: the team itself, its members, its namespaces and their local queues."""

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from queues.choices import AccountingMode, TeamRole
from queues.forms.edits import NAME_HELP, Choices, EditForm, choose, weight_field
from queues.specs import LocalQueueSpec, TeamSpec


class TeamForm(EditForm):
    """A team."""

    name = forms.CharField(
        label=_("Name"), help_text=_("Lower case letters, digits and dashes; it never changes.")
    )
    display_name = forms.CharField(label=_("Shown as"), max_length=100)
    cost_center = forms.CharField(label=_("Cost centre"), max_length=64, required=False)
    accounting_mode = forms.ChoiceField(
        label=_("Accounting"), choices=AccountingMode.choices, initial=AccountingMode.SHOWBACK
    )
    description = forms.CharField(
        label=_("Description"), widget=forms.Textarea(attrs={"rows": 2}), required=False
    )

    def to_spec(self, name: str = "") -> TeamSpec:
        """Return what was asked for."""
        data = self.cleaned_data
        return TeamSpec(
            name=name or data["name"],
            display_name=data["display_name"],
            cost_center=data["cost_center"],
            accounting_mode=data["accounting_mode"],
            description=data["description"],
        )


class MemberForm(forms.Form):
    """Somebody's role in a team."""

    username = forms.CharField(label=_("User name"), max_length=150)
    role = forms.ChoiceField(label=_("Role"), choices=TeamRole.choices, initial=TeamRole.MEMBER)


class NamespaceForm(forms.Form):
    """A namespace that a team owns."""

    namespace = forms.CharField(label=_("Namespace"), max_length=253)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        required=False,
        help_text=_("Only where it belongs to another team by now; both teams read it."),
    )


class LocalQueueForm(forms.Form):
    """A namespace's door to a cluster queue."""

    namespace = forms.ChoiceField(label=_("Namespace"))
    name = forms.CharField(label=_("Name"), max_length=253, help_text=NAME_HELP)
    cluster_queue = forms.ChoiceField(label=_("Cluster queue"))
    fair_weight = weight_field(
        _("Next to the other local queues, where the cluster queue goes by usage; 1 if empty."),
        required=False,
    )

    def __init__(
        self, *args: Any, namespaces: Choices = (), queues: Choices = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        choose(self, "namespace", namespaces)
        choose(self, "cluster_queue", queues)

    def to_spec(self) -> LocalQueueSpec:
        """Return what was asked for."""
        data = self.cleaned_data
        names = (data["namespace"], data["name"], data["cluster_queue"])
        weight = data["fair_weight"]
        return LocalQueueSpec(*names, fair_weight=Decimal(1) if weight is None else weight)
