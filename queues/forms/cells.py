"""Amounts of many cells at once as a table of inputs: what differs becomes cells of a spec."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.problems import Problem
from gpuplatform.common.quantities import format_quantity
from queues.forms.quotas import limit_text, read_amount
from queues.specs import CellSpec

AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")
MOST_ROWS = 300  # a form has no more fields than Django takes
_SEEN = re.compile(r"(\d{1,19})/(\d{0,19})/(\d{0,19})", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_CELL = re.compile(r"cells\[(\d+)\](?:\.(\w+))?")


class CellForm(forms.Form):
    """One cell of a queue's quota table; ``cell`` is how it stands."""

    nominal = forms.CharField(label=_("Nominal"), max_length=64)
    borrowing_limit = forms.CharField(label=_("Borrowing limit"), required=False, max_length=64)
    lending_limit = forms.CharField(label=_("Lending limit"), required=False, max_length=64)

    def __init__(self, cell: CellSpec, data: Mapping[str, Any] | None = None) -> None:
        self.cell = cell
        initial = {
            "nominal": format_quantity(cell.resource, cell.nominal),
            "borrowing_limit": limit_text(cell.resource, cell.borrowing_limit),
            "lending_limit": limit_text(cell.resource, cell.lending_limit),
        }
        super().__init__(data, prefix="|".join(cell.place), initial=initial)
        for name in AMOUNTS:
            field = self.fields[name]
            label = f"{cell.queue} {cell.flavor}: {field.label}"
            field.widget.attrs.update(
                {"class": "num", "inputmode": "numeric", "aria-label": label}
            )
            if name != "nominal":
                field.widget.attrs["placeholder"] = gettext("no limit")

    def clean(self) -> dict[str, Any]:
        """Turn quantities into amounts."""
        data = dict(super().clean() or {})
        for name in AMOUNTS:
            text = str(data.get(name) or "")
            data[name] = read_amount(self, name, self.cell.resource, text) if text else None
        return data

    def wanted(self) -> CellSpec:
        """Return the cell as it is asked for."""
        data = self.cleaned_data
        return CellSpec(*self.cell.place, **{name: data[name] for name in AMOUNTS})


class CellRows:
    """The table; only cells that differ from how they stand are asked for.

    A cell that the answer does not hold stands as it is, so that a filtered table edits what it
    shows and nothing else.
    """

    def __init__(self, cells: Iterable[CellSpec], data: Mapping[str, Any] | None = None) -> None:
        self._data = data
        self.forms = [self._form(cell) for cell in cells]

    def _form(self, cell: CellSpec) -> CellForm:
        return CellForm(cell, self._of(cell))

    def _of(self, cell: CellSpec) -> Mapping[str, Any] | None:
        there = self._data is not None and f"{'|'.join(cell.place)}-nominal" in self._data
        return self._data if there else None

    def is_valid(self) -> bool:
        """Return whether everything typed is an amount."""
        asked = [form.is_valid() for form in self.forms if form.is_bound]  # each of them
        return all(asked)

    def wanted(self) -> list[CellSpec]:
        """Return the cells that differ from how they stand."""
        return [form.wanted() for form in self._changed()]

    def _changed(self) -> Sequence[CellForm]:
        return [form for form in self.forms if form.is_bound and self._differs(form)]

    def _differs(self, form: CellForm) -> bool:
        return form.wanted() != form.cell

    def add_problem(self, problem: Problem) -> str | None:
        """Put a problem at its cell; return the input's id, None if it is about none."""
        found = _CELL.fullmatch(problem.path)
        changed = self._changed()
        if not found or int(found[1]) >= len(changed):
            return None
        form = changed[int(found[1])]
        field = found[2] if found[2] in form.fields else "nominal"
        form.add_error(field, problem.message)
        return str(form[field].id_for_label)

    def mistakes(self) -> list[dict[str, str]]:
        """Return what is no amount, for the summary."""
        return [
            {
                "field": form[name].id_for_label,
                "code": str(error["code"] or "invalid"),
                "path": name,
                "message": f"{form.cell.queue} {form.cell.flavor}: {error['message']}",
            }
            for form in self.forms
            if form.is_bound
            for name, errors in form.errors.get_json_data().items()
            for error in errors
        ]


def text_of(cell: CellSpec) -> str:
    """Return the amounts of a cell in one text, for a hidden field: ``8/16/``."""
    return "/".join("" if one is None else str(one) for one in _amounts(cell))


def _amounts(cell: CellSpec) -> tuple[int | None, ...]:
    return tuple(getattr(cell, name) for name in AMOUNTS)


def cell_in(text: str, cell: CellSpec) -> CellSpec:
    """Return a cell with the amounts of such a text; what cannot be read leaves it as it is."""
    found = _SEEN.fullmatch(text)
    if not found:
        return cell
    amounts = [int(part) if part else None for part in found.groups()]
    return CellSpec(*cell.place, **dict(zip(AMOUNTS, amounts, strict=True)))  # type: ignore[arg-type]


class SeenCellForm(CellForm):
    """A cell that is saved: it carries how it stood when the form was made."""

    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, cell: CellSpec, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(cell, data)
        self.initial["seen"] = text_of(cell)

    @property
    def stood(self) -> CellSpec:
        """Return how the cell stood when the form was made."""
        return cell_in(str(self.cleaned_data.get("seen") or ""), self.cell)


@dataclass(frozen=True, slots=True)
class Clash:
    """One cell of a conflict; ``yours`` None takes theirs."""

    label: str
    seen: CellSpec
    theirs: CellSpec
    yours: CellSpec | None

    @property
    def is_clash(self) -> bool:
        """Return whether both sides changed it, and not to the same."""
        return self.yours is not None and self.seen != self.theirs != self.yours


class SeenRows(CellRows):
    """The table of an edit: what differs from how it stood when the form was made is asked for."""

    def _form(self, cell: CellSpec) -> CellForm:
        return SeenCellForm(cell, self._of(cell))

    def versions(self) -> dict[str, int]:
        """Return the versions of the queues that were seen."""
        told = {
            one.queue: str((self._data or {}).get(f"version|{one.queue}", ""))
            for one in self.wanted()
        }
        return {queue: int(text) for queue, text in told.items() if _NUMBER.fullmatch(text)}

    def _differs(self, form: CellForm) -> bool:
        assert isinstance(form, SeenCellForm)
        return form.wanted() != form.stood

    def clashes(self) -> list[Clash]:
        """Return the cells that either side has changed."""
        found = []
        for form in self.forms:
            if not isinstance(form, SeenCellForm) or not form.is_bound:
                continue
            yours = form.wanted() if self._differs(form) else None
            if yours is not None or form.stood != form.cell:
                label = f"{form.cell.queue} {form.cell.flavor}"
                found.append(Clash(label, form.stood, form.cell, yours))
        return found

    def merged(self) -> dict[str, str]:
        """Return the form anew: yours where you changed something, theirs for all the rest."""
        data: dict[str, str] = {}
        for form in self.forms:
            if form.is_bound:
                data |= filled(form.wanted() if self._differs(form) else form.cell, form.cell)
        return data


def filled(cell: CellSpec, seen: CellSpec) -> dict[str, str]:
    """Return what a form sends that shows a cell, and has seen it otherwise."""
    form = CellForm(cell)
    told = {form[name].html_name: str(form.initial[name]) for name in AMOUNTS}
    return told | {f"{form.prefix}-seen": text_of(seen)}
