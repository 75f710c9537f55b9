"""CSV files that people send: rows by the names of their columns, and nothing lost on the way."""

import csv
import io
from collections import Counter

from django.utils.translation import gettext as _

SHOWN = 40  # characters of a name that a refusal repeats


class BadCsvError(ValueError):
    """What is wrong with a file as a whole, in words that stand behind a colon."""


def csv_rows(text: str) -> list[dict[str, str | None]]:
    """Return the rows of a CSV text, as :func:`csv_lines` does, without their lines."""
    return [row for _line, row in csv_lines(text)]


def csv_lines(text: str) -> list[tuple[int, dict[str, str | None]]]:
    """Return the rows of a CSV text, each with the number of the line on which it ends.

    None is a cell that a short row leaves out.

    Raises:
        BadCsvError: it is no CSV, a column has the name of another one, or a row is longer than
            the head; either would lose cells in silence.
    """
    reader = csv.DictReader(io.StringIO(text))
    rows: list[tuple[int, dict[str, str | None]]] = []
    try:
        times = Counter(name.strip() for name in reader.fieldnames or ())
        if twice := [name for name in times if name and times[name] > 1]:
            words = _("the column {name} stands twice in the head")
            raise BadCsvError(words.format(name=twice[0][:SHOWN]))
        for row in reader:
            if None in row:
                words = _("line {line} has more cells than the head")
                raise BadCsvError(words.format(line=reader.line_num))
            rows.append((reader.line_num, row))
    except csv.Error as error:
        raise BadCsvError(str(error)) from error
    return rows
