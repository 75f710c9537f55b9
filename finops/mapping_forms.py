"""Forms of mappings: a new one, its end, a file of many, one click for what is unmatched."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django import forms
from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from finops.forms import REASON_LENGTH
from finops.mapping_rules import SAID_BY
from finops.models.mappings import BillingMode, MappingKind
from finops.specs import MappingSpec
from gpuplatform.common.csvs import BadCsvError, csv_lines
from gpuplatform.common.days import InstantField
from gpuplatform.common.decimals import AmountField
from gpuplatform.common.periods import is_day
from gpuplatform.common.problems import Problem, Rejected
from queues.models import Team

COLUMNS = (
    *("kind", "cluster", "key", "value", "team", "mode", "namespace"),
    *("tokens_per_second", "gpus", "valid_from", "valid_to", "note"),
)
MOST_ROWS = 5000
# Of a mapping made by one click; kept, so it is in nobody's language.
ASSIGNED = "Assigned from the list of unmatched things."
MOST_BYTES = 2_000_000
VALUE_LABELS: Mapping[str, Any] = {
    MappingKind.NAMESPACE: _("Namespace"),
    MappingKind.LABEL: _("Value of the label"),
    MappingKind.ANNOTATION: _("Value of the annotation"),
    MappingKind.LITELLM_TEAM: _("Team id in LiteLLM"),
    MappingKind.QUEUE: _("Cluster queue"),
    MappingKind.COST_CENTER: _("Cost centre"),
    MappingKind.MODE: _("Namespace"),
    MappingKind.DEPLOYMENT: _("Model group"),
}


class MappingForm(forms.Form):
    """A new mapping of one kind. What is in force is not edited; it ends where this starts."""

    kind = forms.CharField(widget=forms.HiddenInput)
    key = forms.CharField(
        label=_("Key"), max_length=317, required=False, help_text=_("As on the pods: equipo.")
    )
    value = forms.CharField(max_length=255)
    team = forms.CharField(label=_("Team"), max_length=63, required=False)
    mode = forms.ChoiceField(label=_("Billing mode"), choices=BillingMode.choices, required=False)
    namespace = forms.CharField(
        label=_("Namespace that serves it"), max_length=253, required=False
    )
    tokens_per_second = AmountField(
        label=_("Tokens per second at full load"),
        required=False,
        max_digits=14,
        decimal_places=4,
        help_text=_("Of the whole deployment, as a benchmark measured it."),
    )
    gpus = AmountField(
        label=_("GPUs of the deployment"), required=False, max_digits=10, decimal_places=4
    )
    cluster = forms.CharField(
        label=_("Cluster"),
        max_length=253,
        required=False,
        help_text=_("Empty: whatever the cluster."),
    )
    valid_from = InstantField(
        label=_("Valid from, UTC"),
        required=False,
        help_text=_("Empty: since the last closed month."),
    )
    valid_to = InstantField(
        label=_("Valid until, UTC"),
        required=False,
        help_text=_("Empty goes on until another mapping follows."),
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=REASON_LENGTH, widget=forms.Textarea(attrs={"rows": 2})
    )

    def __init__(self, kind: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.about = kind
        self.fields["kind"].initial = kind
        self.fields["value"].label = VALUE_LABELS[kind]
        for name, kinds in SAID_BY.items():
            if kind not in kinds:
                del self.fields[name]
        if "team" in self.fields:
            self.fields["team"].widget = forms.Select(choices=team_choices())

    def spec(self) -> MappingSpec:
        """Return the mapping that the valid form asks for."""
        cleaned = self.cleaned_data
        said = {name: cleaned[name] for name in SAID_BY if name in cleaned}
        return MappingSpec(
            kind=self.about,
            value=cleaned["value"],
            valid_from=cleaned["valid_from"],
            valid_to=cleaned["valid_to"],
            note=cleaned["reason"],
            **said,
        )


class AssignForm(forms.Form):
    """One click: whose an unmatched thing is."""

    kind = forms.ChoiceField(choices=[(kind, kind) for kind in SAID_BY["team"]])
    value = forms.CharField(max_length=255)
    cluster = forms.CharField(max_length=253, required=False)
    team = forms.CharField(max_length=63)

    def spec(self) -> MappingSpec:
        """Return the mapping that the click asks for."""
        return MappingSpec(
            **{name: self.cleaned_data[name] for name in ("kind", "value", "cluster", "team")},
            note=ASSIGNED,
        )


_ROW = re.compile(r"mappings\[(?P<row>\d+)\]\.", re.ASCII)


class MappingFileForm(forms.Form):
    """Many mappings as CSV, with the columns of the export."""

    file = forms.FileField(label=_("CSV file"))
    reason = forms.CharField(label=_("Reason"), max_length=REASON_LENGTH)

    def specs(self) -> list[MappingSpec]:
        """Return the mappings of the file.

        Raises:
            Rejected: no CSV with these columns, or a cell that cannot be read.
        """
        rows = read_csv(self.cleaned_data["file"])
        self._lines = [line for line, _row in rows]
        return specs_of(row for _line, row in rows)

    def told(self, problem: Problem) -> str:
        """Return a problem of a row with its line in the file, another one as it is."""
        lines: list[int] = getattr(self, "_lines", [])
        found = _ROW.match(problem.path)
        position = int(found["row"]) if found else 0  # of one row the paths name no row
        if position >= len(lines):
            return str(problem.message)
        words = gettext("Line {line}, {column}: {problem}")
        column = problem.path[found.end() :] if found else problem.path
        return words.format(line=lines[position], column=column, problem=problem.message)


def team_choices() -> list[tuple[str, str]]:
    """Return the teams that something can be assigned to."""
    rows = Team.objects.order_by("name").values_list("name", "display_name")
    return [(name, display or name) for name, display in rows]


def read_csv(file: Any) -> list[tuple[int, dict[str, str | None]]]:
    """Return the rows of a file, each with its line.

    Raises:
        Rejected: it cannot be read, or lacks what every mapping has.
    """
    body = file.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        words = gettext("The file is too large.")
        raise Rejected([Problem("file", "too_large", words)])
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        words = gettext("The file is not UTF-8.")
        raise Rejected([Problem("file", "BAD_TEXT", words)]) from error
    try:
        rows = csv_lines(text)
    except BadCsvError as error:
        words = gettext("The file cannot be read: {why}.").format(why=error)
        raise Rejected([Problem("file", "BAD_SYNTAX", words)]) from error
    lacking = {"kind", "value"} - set(rows[0][1] if rows else {})
    if lacking or len(rows) > MOST_ROWS:
        words = gettext("The file needs the columns kind and value, and from 1 to {most} rows.")
        raise Rejected([Problem("file", "BAD_SYNTAX", words.format(most=MOST_ROWS))])
    return rows


def specs_of(rows: Iterable[Mapping[str, Any]]) -> list[MappingSpec]:
    """Return the mappings of rows; columns that the export adds are not read.

    Raises:
        Rejected: with the problems of every row; paths start with ``mappings[1]``.
    """
    problems: list[Problem] = []
    specs = [
        _spec_of(row, f"mappings[{position}].", problems) for position, row in enumerate(rows)
    ]
    if problems:
        raise Rejected(problems)
    return specs


def _spec_of(row: Mapping[str, Any], prefix: str, problems: list[Problem]) -> MappingSpec:
    cells = {name: _unguarded(str(row.get(name) or "").strip()) for name in COLUMNS}
    read: dict[str, Any] = {
        name: cells[name]
        for name in ("kind", "cluster", "key", "value", "team", "mode", "namespace", "note")
    }
    for name, reader in _READERS.items():
        try:
            read[name] = reader(cells[name]) if cells[name] else None
        except (InvalidOperation, ValueError, OverflowError):
            words = gettext("{text} cannot be read.").format(text=cells[name][:40])
            problems.append(Problem(prefix + name, "BAD_VALUE", words))
    return MappingSpec(**read)


def _unguarded(text: str) -> str:
    """Take off what an export puts before a cell that would start a formula."""
    return text[1:] if text[:1] == "'" and text[1:2] in set("=+-@") else text


def _instant(text: str) -> datetime:
    found = parse_datetime(text)
    if found is None or not is_day(found):
        raise ValueError(text)
    # One that no zone can be told of, such as the first instants of year 1, is none.
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


_READERS: Mapping[str, Any] = {
    "tokens_per_second": Decimal,
    "gpus": Decimal,
    "valid_from": _instant,
    "valid_to": _instant,
}


def kinds() -> Iterator[tuple[str, str | Promise]]:
    """Yield the kinds of mappings with their names."""
    yield from MappingKind.choices
