"""``manage.py chargeback``: files in, bills or a comparison out."""

import gzip
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from finops.allocation.encoding import outcome_of
from tests.finops.allocation.months import june


def chargeback(*arguments: Any) -> str:
    out = StringIO()
    call_command("chargeback", *map(str, arguments), stdout=out)
    return out.getvalue()


def scenario(name: str, idle: str = "separate") -> dict[str, Any]:
    facts = june(idle)
    return {"id": name, "theme": "t", "why": "w", "facts": facts, "expected": outcome_of(facts)}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(content: Any, name: str = "facts.json") -> Path:
        file = tmp_path / name
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    return write


def test_a_file_of_facts_gives_the_outcome(write: Any) -> None:
    outcome = json.loads(chargeback(write(june())))
    assert list(outcome) == ["lines", "totals", "memo", "findings"]
    assert outcome["totals"]["total"] == "4032.00"


def test_refused_facts_give_their_problems_and_no_failure(write: Any) -> None:
    outcome = json.loads(chargeback(write({"teams": []})))
    assert outcome == {
        "problems": [
            {"path": "period", "code": "required"},
            {"path": "teams", "code": "required"},
        ]
    }


def test_a_list_of_scenarios_gives_each_outcome_by_id(write: Any) -> None:
    listed = json.loads(chargeback(write([scenario("a"), scenario("b", "even")])))
    assert [one["id"] for one in listed] == ["a", "b"]
    assert listed[1]["outcome"] == outcome_of(june("even"))


def test_several_files_give_one_list_in_order(write: Any) -> None:
    first, second = write([scenario("a")], "first.json"), write(june("even"), "second.json")
    listed = json.loads(chargeback(second, first))
    assert [one["id"] for one in listed] == ["second.json", "a"]


def test_the_same_facts_give_the_same_bytes_into_a_file_and_out_of_gzip(
    write: Any, tmp_path: Path
) -> None:
    plain, packed, out = write(june()), tmp_path / "facts.json.gz", tmp_path / "out.json"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert chargeback(packed, "-o", out) == ""
    assert out.read_text() == chargeback(plain)


def test_check_counts_what_is_equal(write: Any) -> None:
    said = chargeback(write([scenario("a"), scenario("b", "even")]), "--check")
    assert said == "2 of 2 equal\n"


def test_a_folder_stands_for_the_files_in_it(write: Any, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no \.json"):
        chargeback(tmp_path, "--check")
    for folder, name in (("hand", "a"), ("random", "b")):
        (tmp_path / folder).mkdir()
        write([scenario(name)], f"{folder}/{name}.json")
    write("a word on the files", "FORMAT.md")
    assert chargeback(tmp_path, "--check") == "2 of 2 equal\n"


def test_check_shows_the_first_difference_of_each_and_fails(write: Any) -> None:
    wrong, right = scenario("wrong"), scenario("right")
    wrong["expected"]["lines"][0]["amount"] = "1512.01"
    wrong["expected"]["totals"]["total"] = "4032.01"
    out = StringIO()
    with pytest.raises(CommandError, match="differ"):
        call_command("chargeback", str(write([wrong, right])), "--check", stdout=out)
    assert out.getvalue().splitlines() == [
        "1 of 2 equal",
        'wrong: lines[0].amount: expected "1512.01", found "1512.00"',
    ]


def test_check_and_output_go_together(write: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert chargeback(write([scenario("a")]), "--check", "-o", out) == "1 of 1 equal\n"
    assert json.loads(out.read_text())[0]["id"] == "a"


@pytest.mark.parametrize("missing", [{"line": 1}, {"facts": {}}, {"id": 3, "facts": {}}, 5])
def test_what_is_no_scenario_is_named(write: Any, missing: Any) -> None:
    with pytest.raises(CommandError, match=r"\[1\] must be"):
        chargeback(write([scenario("a"), missing]))


@pytest.mark.parametrize("text", ["", "{", "3", '"x"', "[" * 100_000])
def test_what_is_no_json_of_facts_is_named(write: Any, text: str) -> None:
    with pytest.raises(CommandError, match=r"facts\.json"):
        chargeback(write(text))


def test_check_without_anything_expected_is_no_success(write: Any) -> None:
    with pytest.raises(CommandError, match="nothing to compare"):
        chargeback(write(june()), "--check")


def test_a_file_that_is_not_there_or_cannot_be_written_is_named(
    write: Any, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match=r"absent\.json"):
        chargeback(tmp_path / "absent.json")
    with pytest.raises(CommandError, match="nowhere"):
        chargeback(write(june()), "-o", tmp_path / "nowhere" / "out.json")


def test_a_name_that_stands_twice_in_an_object_is_refused(write: Any) -> None:
    with pytest.raises(CommandError, match=r"facts\.json: the name 'teams' stands twice"):
        chargeback(write('{"teams": [], "teams": []}'))
