"""What every edit form carries, and how refusals come to their fields."""

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from django import forms
from django.core.validators import MinLengthValidator
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.audit import LEAST_REASON
from gpuplatform.common.decimals import AmountField, WholeField
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.problems import Problem

REASON_LENGTH = LEAST_REASON
REASON_HELP = _("At least 10 characters; kept in the audit log next to your name.")
NAME_HELP = _("As Kubernetes spells names: lower case letters, digits, dashes and dots.")
FIELD_OF = {
    "namespace_selector": "admits",
    "groups": "quota_source",
    "preference": "flavor_preference",
}

COSTLY = frozenset({"EDIT_EVICTS", "EDIT_SHRINKS", "EDIT_MOVES", "EDIT_BELOW_USE"})

Choices = Sequence[tuple[str, Any]]
Part = tuple[str, Decimal, Decimal]  # cohort, own weight, that of all its members
Placing = Callable[[Problem], str | None]


def costs_work(found: Iterable[Diagnostic]) -> bool:
    """Return whether an edit takes running work, or promises less than is held."""
    return any(diagnostic.code in COSTLY for diagnostic in found)


class EditForm(forms.Form):
    """What every edit carries: the version and the state that were seen, and the reason."""

    version = WholeField(widget=forms.HiddenInput, required=False)
    seen = forms.CharField(widget=forms.HiddenInput, required=False)
    confirm = forms.CharField(
        label=_("The name of what you edit, typed out"),
        help_text=_("Asked for where work is evicted, or where less is promised than is held."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        required=False,
    )
    reason = forms.CharField(
        label=_("Reason"),
        widget=forms.Textarea(attrs={"rows": 2}),
        validators=[MinLengthValidator(REASON_LENGTH)],
        help_text=REASON_HELP,
    )

    costs_work = False  # whether edits of this kind may cost running work

    def __init__(self, *args: Any, is_new: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_new = is_new
        if is_new or not self.costs_work:
            del self.fields["confirm"]
        if is_new:
            self.fields["reason"].required = False
            self.fields["reason"].help_text = _(
                "None, or at least 10 characters; kept in the audit log next to your name."
            )
        elif "name" in self.fields:
            del self.fields["name"]
        self.order_fields([*(name for name in self.fields if name != "reason"), "reason"])

    def unconfirmed(self, found: Iterable[Diagnostic], name: str) -> bool:
        """Return whether the edit costs others work and its object was not named for it.

        Who loses work by it, or more than is its own by then: ``product.md`` 1.3, page 4.
        """
        asks = "confirm" in self.fields and costs_work(found)
        return asks and self.cleaned_data.get("confirm", "").strip() != name

    def need_no_reason(self) -> None:
        """Let the form be asked what it would do; nothing is kept, so nothing is audited."""
        self.fields["reason"].required = False
        self.fields["reason"].validators = []


def weight_field(help_text: Any, *, required: bool = True) -> AmountField:
    """Return the field of a fair weight; where it counts stands in the words of the page."""
    return AmountField(
        label=_("Weight"),
        help_text=help_text,
        required=required,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "class": "num"}),
    )


def tell_part(form: forms.Form, part: Part | None) -> None:
    """Say at the weight which part of all sisters' weights it is now."""
    if part is None or not part[2]:
        return
    cohort, own, total = part
    words = _("Now %(own)s of %(total)s in %(cohort)s: %(percent)s %%.") % {
        "own": weight_text(own),
        "total": weight_text(total),
        "cohort": cohort,
        "percent": f"{100 * own / total:.0f}",
    }
    field = form.fields["fair_weight"]
    field.help_text = f"{field.help_text} {words}"


def weight_text(weight: Decimal) -> str:
    """Return a weight without the zeros that its column adds."""
    return f"{weight.normalize():f}"


def choose(form: forms.Form, field: str, choices: Choices) -> None:
    """Set what a field offers; what is stored already stays possible."""
    target = form.fields[field]
    assert isinstance(target, forms.ChoiceField)
    known = {value for value, _label in choices}
    kept = str(form.initial.get(field) or "")
    target.choices = [*choices, *([(kept, kept)] if kept and kept not in known else [])]


def nowhere(_problem: Problem) -> None:
    """Place no problem: the form has no table."""
    return


def add_problems(
    form: forms.Form, problems: Iterable[Problem], place: Placing = nowhere
) -> list[dict[str, str]]:
    """Put each problem at its field; return them for the summary, with the id to jump to.

    ``place`` is asked first: it knows the rows of a table inside the form.
    """
    summary = []
    for problem in problems:
        where = place(problem)
        if where is None:
            name = _field_of(form, problem.path)
            known = name in form.fields
            form.add_error(name if known else None, problem.message)
            where = form[name].id_for_label if known else ""
        line = {"code": problem.code, "path": problem.path, "message": problem.message}
        summary.append({"field": where, **line})
    return summary


def _field_of(form: forms.Form, path: str) -> str:
    """Return the field that shows the end of a path, else the one that shows its beginning."""
    first, *_rest = re.split(r"[.\[]", path)
    last = path.rsplit(".", maxsplit=1)[-1].partition("[")[0]
    last = FIELD_OF.get(last, last)
    return last if last in form.fields else first


def form_problems(*given: forms.Form) -> list[dict[str, str]]:
    """Return what forms themselves refused, for the same summary."""
    return [
        {
            "field": form[name].id_for_label if name in form.fields else "",
            "code": str(error["code"] or "invalid"),
            "path": name if name in form.fields else "",
            "message": _labelled(form, name, error["message"]),
        }
        for form in given
        for name, errors in form.errors.get_json_data().items()
        for error in errors
    ]


def _labelled(form: forms.Form, name: str, message: str) -> str:
    """Return what a field refused, with the words by which people find it."""
    label = form.fields[name].label if name in form.fields else ""
    return f"{label}: {message}" if label else message
