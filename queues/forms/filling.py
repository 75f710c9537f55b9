"""One amount for the selected cells of a table: set, raised, lowered, or a part of what stands."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.quantities import format_quantity, parse_quantity
from queues.forms.cells import MOST_ROWS
from queues.specs import CellSpec

NOMINAL = "nominal"
_PERCENT = re.compile(r"(\d{1,4}(?:\.\d{1,2})?) ?%", re.ASCII)


class FillForm(forms.Form):
    """What is put into the selected cells; it saves nothing by itself."""

    column = forms.ChoiceField(
        label=_("Put into"),
        choices=[
            (NOMINAL, _("Nominal")),
            ("borrowing_limit", _("Borrowing limit")),
            ("lending_limit", _("Lending limit")),
        ],
    )
    amount = forms.CharField(
        label=_("Amount"),
        required=False,
        max_length=64,
        help_text=_("12 sets it, +4 and -4 change it, 50% is that part of it; empty is no limit."),
    )

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, prefix="fill")
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = field.label


def fill(
    cells: Iterable[CellSpec], data: Mapping[str, Any], picked: Iterable[str]
) -> dict[str, str]:
    """Return what the inputs of the picked cells say then, by their names.

    Each is worked out from what its input says now, saved or not.

    Raises:
        Rejected: nothing is picked, or the amount cannot be put into some cell; all that are so.
    """
    form, wanted = FillForm(data), set(picked)
    chosen = [cell for cell in cells if "|".join(cell.place) in wanted]
    problems, filled = [], dict[str, str]()
    if not chosen:
        problems.append(Problem("pick", "required", gettext("Select at least one row.")))
    if not form.is_valid():
        problems.append(Problem("amount", "invalid", gettext("Say which amount, and how much.")))
        raise Rejected(problems)
    column, text = form.cleaned_data["column"], form.cleaned_data["amount"].strip()
    for cell in chosen[:MOST_ROWS]:
        name = f"{'|'.join(cell.place)}-{column}"
        try:
            filled[name] = _amount(cell.resource, column, text, str(data.get(name) or ""))
        except ValueError as error:
            said = f"{cell.queue} {cell.flavor}: {error}"
            problems.append(Problem(name, "OUT_OF_RANGE", said))
    if problems:
        raise Rejected(problems)
    return filled


def _amount(resource: str, column: str, text: str, now: str) -> str:
    """Return the text of one input.

    Raises:
        ValueError: in words, why the amount cannot be put there.
    """
    if not text:
        if column == NOMINAL:
            raise ValueError(gettext("say how much; 0 is possible"))
        return ""
    if not (text[0] in "+-" or _PERCENT.fullmatch(text)):
        return format_quantity(resource, _read(resource, text))
    if not now:
        raise ValueError(gettext("it has no limit that could be changed"))
    stands = _read(resource, now)
    if part := _PERCENT.fullmatch(text):
        after = int(stands * Decimal(part[1]) / 100)
    else:
        more = _read(resource, text[1:].strip())
        after = stands + more if text[0] == "+" else stands - more
    if after < 0:
        raise ValueError(gettext("that is less than nothing"))
    return format_quantity(resource, after)


def _read(resource: str, text: str) -> int:
    try:
        return parse_quantity(resource, text)
    except ValueError:
        message = gettext("%(text)s is not an amount; write 8, 500m or 512Gi")
        raise ValueError(message % {"text": text}) from None
