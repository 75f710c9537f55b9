"""``manage.py decide``: files in, outcomes or a comparison out."""

import gzip
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.engine.kueue.platform import platform, queue, work

SAMPLES = Path(__file__).parent / "samples"


def decide(*arguments: Any) -> str:
    out = StringIO()
    call_command("decide", *map(str, arguments), stdout=out)
    return out.getvalue()


def test_outcomes_of_all_files_in_order() -> None:
    listed = json.loads(decide(SAMPLES / "topology.json", SAMPLES / "quota.json"))
    assert [one["id"] for one in listed[:3]] == ["tas-01", "tas-10", "tas-29"]
    assert listed[3]["outcome"]["quiescent"] is True


def test_output_file_and_gzip(tmp_path: Path) -> None:
    packed, out = tmp_path / "one.json.gz", tmp_path / "out.json"
    packed.write_bytes(gzip.compress((SAMPLES / "quota.json").read_bytes()))
    assert decide(packed, "-o", out) == ""
    assert json.loads(out.read_text())[0]["id"] == "quota-01"


def test_check_counts_levels() -> None:
    assert decide(SAMPLES / "quota.json", "--check").splitlines() == [
        "level 1: 13 of 13 equal",
        "level 2: 13 of 13 equal",
        "level 3: 13 of 13 equal",
    ]


def test_check_fails_on_a_difference(tmp_path: Path) -> None:
    scenarios = json.loads((SAMPLES / "quota.json").read_text())
    scenarios[0]["expected"]["final"]["admitted"] = ["nobody"]
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(scenarios))
    out = StringIO()
    with pytest.raises(CommandError, match="differ"):
        call_command("decide", str(changed), "--check", stdout=out)
    assert "quota-01 level 1: final.admitted[0]: expected 'nobody'" in out.getvalue()


def test_level_3_alone_is_no_failure(tmp_path: Path) -> None:
    scenarios = json.loads((SAMPLES / "quota.json").read_text())
    waiting = next(s["expected"]["final"] for s in scenarios if s["id"] == "quota-05")
    waiting["pending"] = {}
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(scenarios))
    assert "level 3: 12 of 13 equal" in decide(changed, "--check")


def test_profile_recommended(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    workloads = [work("x", 1, at=1), work("y", 1, at=2)]
    file.write_text(json.dumps([platform([queue("a", 4)], workloads)]))
    outcome = json.loads(decide(file, "--profile", "recommended"))[0]["outcome"]
    assert len(outcome["cycles"]) == 1


def test_one_scenario_needs_no_list(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps(platform([queue("a", 4)], [work("x", 1)])))
    (one,) = json.loads(decide(file))
    assert one["outcome"]["final"]["admitted"] == ["x"]


def test_a_name_that_stands_twice_in_an_object_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "twice.json"
    file.write_text('[{"id": "a", "id": "b"}]')
    with pytest.raises(CommandError, match=r"twice\.json: the name 'id' stands twice"):
        decide(file)


def test_bad_files_name_the_path(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps([platform([queue("a", 4)], [], colour=1)]))
    with pytest.raises(CommandError, match=r"\[0\].colour: unknown field"):
        decide(file)
    file.write_text("3")
    with pytest.raises(CommandError, match="must be a scenario or a list"):
        decide(file)
    file.write_text("not JSON")
    with pytest.raises(CommandError, match=r"bad\.json"):
        decide(file)


@pytest.mark.parametrize("expected", [3, [], {}, {"cycles": 1, "final": {}}, {"cycles": [1]}])
def test_an_expectation_without_the_shape_of_an_outcome_is_named(tmp_path: Path, expected) -> None:
    made = {**platform([queue("a", 4)], [work("x", 1)]), "expected": expected}
    file = tmp_path / "odd.json"
    file.write_text(json.dumps([made]), encoding="utf-8")
    with pytest.raises(CommandError, match="expected has not the shape of an outcome"):
        call_command("decide", str(file), "--check")
