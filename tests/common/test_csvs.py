"""Files of rows: what would lose a cell in silence is refused."""

import pytest

from gpuplatform.common.csvs import BadCsvError, csv_rows


def test_rows_are_read_by_the_names_of_their_columns():
    assert csv_rows("a,b\n1,2\n3\n") == [{"a": "1", "b": "2"}, {"a": "3", "b": None}]
    assert csv_rows("a,,\n1,,\n") == [{"a": "1", "": ""}]  # a spreadsheet's empty columns
    assert csv_rows("") == csv_rows("a,b\n") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,a\n1,2,3\n", "the column a stands twice in the head"),
        ("a, a\n1,2\n", "the column a stands twice in the head"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has more cells than the head"),
        (f"a\n{'x' * 200_000}\n", "field larger than field limit"),
    ],
)
def test_what_would_lose_a_cell_is_refused(text, words):
    with pytest.raises(BadCsvError, match=words):
        csv_rows(text)
