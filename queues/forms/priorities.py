"""The form of a priority class; its rules stand in ``queues.rules``."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.decimals import WholeField
from queues.choices import PriorityKind
from queues.forms.edits import EditForm
from queues.specs import PriorityClassSpec


class PriorityClassForm(EditForm):
    """A named priority."""

    name = forms.CharField(
        label=_("Name"), help_text=_("As Kubernetes spells names; it never changes.")
    )
    kind = forms.ChoiceField(
        label=_("Names the priority of"),
        choices=PriorityKind.choices,
        help_text=_("A workload's own class comes before the class of its pods."),
    )
    value = WholeField(
        label=_("Priority"),
        help_text=_("Higher goes first, and may take GPUs back where a queue's rules say so."),
    )
    global_default = forms.BooleanField(
        label=_("Holds where pods name none"),
        required=False,
        help_text=_("Only of pods, and only one class may."),
    )
    description = forms.CharField(
        label=_("Description"), required=False, max_length=500, help_text=_("When to use it.")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.is_new:
            del self.fields["kind"]

    @staticmethod
    def initial_of(spec: PriorityClassSpec | None) -> dict[str, Any]:
        """Return what the form shows first."""
        shown = spec or PriorityClassSpec(PriorityKind.WORKLOAD.value, "", 0)
        names = ("name", "kind", "value", "global_default", "description")
        return {name: getattr(shown, name) for name in names}

    def to_spec(self, current: PriorityClassSpec | None) -> PriorityClassSpec:
        """Return what was asked for."""
        cleaned = self.cleaned_data
        return PriorityClassSpec(
            current.kind if current else cleaned["kind"],
            current.name if current else cleaned["name"],
            cleaned["value"],
            cleaned["global_default"],
            cleaned["description"],
        )
