"""The quota table as a form: rows that people type become the groups of a spec."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import reasons
from gpuplatform.common.problems import Problem
from gpuplatform.common.quantities import (
    NotWholeError,
    format_quantity,
    nearest_resource,
    parse_quantity,
)
from queues.forms.edits import Choices, choose
from queues.specs import FlavorQuotasSpec, QuotaSpec, ResourceGroupSpec

BLANK_ROWS = 2
GPU = "nvidia.com/gpu"
RESOURCES = (GPU, "cpu", "memory", "pods")
NATIVE = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})  # all others have a domain
_CELL = re.compile(r"groups\[(\d+)\]\.flavors\[(\d+)\](?:\.quotas\[(\d+)\])?(?:\.(\w+))?")
_RESOURCE = re.compile(r"groups\[(\d+)\]\.resources\[(\d+)\]")

Place = tuple[int, int, int]  # group, flavor, quota: where a row stands in the spec


class QuotaRowForm(forms.Form):
    """One cell of a quota table: how much of one resource of one flavor."""

    flavor = forms.ChoiceField(label=_("Flavor"), required=False)
    resource = forms.CharField(
        label=_("Resource"),
        required=False,
        max_length=317,
        initial=GPU,
        widget=forms.TextInput(attrs={"list": "resources"}),
    )
    nominal = forms.CharField(label=_("Nominal"), required=False, max_length=64)
    borrowing_limit = forms.CharField(label=_("Borrowing limit"), required=False, max_length=64)
    lending_limit = forms.CharField(label=_("Lending limit"), required=False, max_length=64)

    def __init__(
        self,
        *args: Any,
        flavors: Choices = (),
        resources: Sequence[str] = RESOURCES,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.resources = resources
        choose(self, "flavor", [("", "-"), *flavors])
        for name, field in self.fields.items():
            field.widget.attrs["aria-label"] = field.label
            if name in {"nominal", "borrowing_limit", "lending_limit"}:
                field.widget.attrs.update({"class": "num", "inputmode": "numeric"})
        for name in ("borrowing_limit", "lending_limit"):
            self.fields[name].widget.attrs["placeholder"] = _("no limit")

    def clean(self) -> dict[str, Any]:
        """Turn quantities into amounts; a row without flavor and nominal is no row."""
        data = dict(super().clean() or {})
        amounts = ("nominal", "borrowing_limit", "lending_limit")
        if not data.get("flavor") and not any(data.get(name) for name in amounts):
            return {}
        data["resource"] = data.get("resource") or GPU
        self._know(data["resource"])
        if not data.get("flavor"):
            self.add_error("flavor", gettext("choose a flavor"))
        if not data.get("nominal"):
            self.add_error("nominal", gettext("say how much; 0 is possible"))
        for name in amounts:
            if data.get(name):
                data[name] = self._amount(name, data)
        return data

    def _know(self, resource: str) -> None:
        """Refuse a bare name that Kubernetes does not have; a domain may stand for anything."""
        if "/" in resource or resource in NATIVE or resource.startswith("hugepages-"):
            return
        numbers = {"resource": resource, "nearest": nearest_resource(resource, self.resources)}
        words = reasons.sentence("UNKNOWN_RESOURCE", numbers)
        self.add_error("resource", forms.ValidationError(words, code="UNKNOWN_RESOURCE"))

    def _amount(self, name: str, data: Mapping[str, Any]) -> int | None:
        return read_amount(self, name, str(data["resource"]), str(data[name]))


def read_amount(form: forms.Form, name: str, resource: str, typed: str) -> int | None:
    """Return what somebody typed as an amount; None and an error at the field if it is none."""
    text = typed.strip()
    try:
        return parse_quantity(resource, text)
    except NotWholeError:
        numbers = {"cause": "NotWhole", "value": text, "resource": resource}
        form.add_error(name, reasons.sentence("BAD_QUANTITY", numbers))
    except ValueError:
        message = gettext("%(text)s is not an amount; write 8, 500m or 512Gi")
        form.add_error(name, message % {"text": text})
    return None


if TYPE_CHECKING:  # generic for the type checker only
    _RowSet = forms.BaseFormSet[QuotaRowForm]
else:
    _RowSet = forms.BaseFormSet


class QuotaRows(_RowSet):
    """The quota table as rows; :meth:`groups` brings them into the shape of a spec."""

    places: dict[Place, QuotaRowForm]

    def groups(self) -> tuple[ResourceGroupSpec, ...]:
        """Return resource groups: flavors that share a resource form one group (Kueue's rule)."""
        rows = [form for form in self.forms if form.cleaned_data.get("flavor")]
        self.places = {}
        groups = _grouped(rows)
        return tuple(self._group(index, group) for index, group in enumerate(groups))

    def _group(self, index: int, rows: list[QuotaRowForm]) -> ResourceGroupSpec:
        resources = tuple(dict.fromkeys(_resource(row) for row in rows))
        flavors = []
        for position, name in enumerate(dict.fromkeys(_flavor(row) for row in rows)):
            own = [row for row in rows if _flavor(row) == name]
            own.sort(key=lambda row: resources.index(_resource(row)))
            self.places |= {(index, position, q): row for q, row in enumerate(own)}
            flavors.append(FlavorQuotasSpec(name, tuple(_quota(row) for row in own)))
        return ResourceGroupSpec(resources, tuple(flavors))

    def add_problem(self, problem: Problem) -> str | None:
        """Put a problem of the table at its row; return the input's id, None if it is not ours."""
        if cell := _CELL.match(problem.path):
            group, flavor, quota = int(cell[1]), int(cell[2]), int(cell[3] or 0)
            row, field = self.places.get((group, flavor, quota)), cell[4] or "flavor"
        elif listed := _RESOURCE.match(problem.path):
            row, field = self.places.get((int(listed[1]), 0, int(listed[2]))), "resource"
        else:
            return None
        if row is None:
            return None
        field = field if field in row.fields else "flavor"
        row.add_error(field, problem.message)
        return row[field].id_for_label


def _flavor(row: QuotaRowForm) -> str:
    return str(row.cleaned_data["flavor"])


def _resource(row: QuotaRowForm) -> str:
    return str(row.cleaned_data["resource"])


def _quota(row: QuotaRowForm) -> QuotaSpec:
    data = row.cleaned_data
    borrowing, lending = data["borrowing_limit"], data["lending_limit"]
    return QuotaSpec(
        data["resource"],
        data["nominal"],
        None if borrowing == "" else borrowing,
        None if lending == "" else lending,
    )


def _grouped(rows: Iterable[QuotaRowForm]) -> list[list[QuotaRowForm]]:
    """Return rows in groups that share a flavor or a resource, in order of first appearance."""
    groups: list[list[QuotaRowForm]] = []
    for row in rows:
        touching = [
            group
            for group in groups
            if any(_flavor(row) == _flavor(o) or _resource(row) == _resource(o) for o in group)
        ]
        for group in touching[1:]:
            touching[0].extend(group)
            groups.remove(group)
        if touching:
            touching[0].append(row)
        else:
            groups.append([row])
    return groups


def quota_rows(
    flavors: Choices,
    data: Any = None,
    groups: Iterable[ResourceGroupSpec] = (),
    resources: Sequence[str] = RESOURCES,
) -> QuotaRows:
    """Return the quota table as a formset, filled from a posted form or from a spec."""
    factory = forms.formset_factory(
        QuotaRowForm, formset=QuotaRows, extra=BLANK_ROWS, max_num=256, absolute_max=300
    )
    initial = [
        {
            "flavor": flavor.flavor,
            "resource": quota.resource,
            "nominal": format_quantity(quota.resource, quota.nominal),
            "borrowing_limit": limit_text(quota.resource, quota.borrowing_limit),
            "lending_limit": limit_text(quota.resource, quota.lending_limit),
        }
        for group in groups
        for flavor in group.flavors
        for quota in flavor.quotas
    ]
    made: Any = factory(
        data,
        prefix="quota",
        initial=initial,
        form_kwargs={"flavors": list(flavors), "resources": resources},
    )
    rows: QuotaRows = made
    return rows


def limit_text(resource: str, amount: int | None) -> str:
    """Return a limit the way people type it; "" is none."""
    return "" if amount is None else format_quantity(resource, amount)
