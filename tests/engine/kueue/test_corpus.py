"""``Profile.kueue()`` decides what the recorded scheduler decided."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduling.engine.profile import Profile
from scheduling.engine.scenario.comparing import differences
from scheduling.engine.scenario.loop import run
from scheduling.engine.scenario.reader import read_scenario

SAMPLES = Path(__file__).parent / "samples"
CORPUS = Path("conformance", "admission")
RANDOM = ("0000", "0250", "0500", "0750", "1000", "1250", "1500", "preference", "threshold")
HAND = (
    "admission-fair-sharing",
    "borrow-preempt",
    "fair-sharing",
    "fungibility",
    "hierarchy",
    "partial",
    "placement-rules",
    "preempt-queue",
    "queueing",
    "quota",
    "reclaim",
    "teams",
)


def differing(file: Path) -> tuple[dict[int, list[str]], int]:
    """Return what differs, by level, and how many scenarios there are."""
    content = file.read_bytes()
    scenarios = json.loads(gzip.decompress(content) if file.suffix == ".gz" else content)
    found: dict[int, list[str]] = {1: [], 2: [], 3: []}
    for value in scenarios:
        outcome = run(read_scenario(value), Profile.kueue())
        for level, lines in found.items():
            unequal = differences(value["expected"], outcome, level)
            lines += [f"{value['id']}: {line}" for line in unequal[:1]]
    return found, len(scenarios)


@pytest.mark.parametrize("name", ["quota", "topology"])
def test_samples(name: str) -> None:
    found, _ = differing(SAMPLES / f"{name}.json")
    assert found == {1: [], 2: [], 3: []}


@pytest.mark.parametrize("theme", HAND)
def test_hand_made(theme: str, shared: Path) -> None:
    found, _ = differing(shared / CORPUS / "hand" / f"{theme}.json")
    assert found == {1: [], 2: [], 3: []}


@pytest.mark.long
@pytest.mark.parametrize("part", RANDOM)
def test_random(part: str, shared: Path) -> None:
    found, count = differing(shared / CORPUS / "random" / f"{part}.json.gz")
    assert (found[1], found[2]) == ([], [])
    assert [line for line in found[3] if not line.startswith("random-any-1110:")] == []
    assert count


@pytest.mark.long
def test_random_topology(shared: Path) -> None:
    found, _ = differing(shared / CORPUS / "tas" / "random-0000.json.gz")
    assert found == {1: [], 2: [], 3: []}


def test_hand_made_topology(shared: Path) -> None:
    found, _ = differing(shared / CORPUS / "tas" / "hand.json")
    assert found == {1: [], 2: [], 3: []}


def test_equal_scenarios_give_equal_outcomes() -> None:
    value: Any = json.loads((SAMPLES / "quota.json").read_text())[0]
    assert run(read_scenario(value), Profile.kueue()) == run(read_scenario(value), Profile.kueue())


@pytest.mark.parametrize("name", ["quota", "topology"])
def test_recommended_comes_to_rest_on_the_samples(name: str) -> None:
    for value in json.loads((SAMPLES / f"{name}.json").read_text()):
        assert run(read_scenario(value), Profile.recommended())["quiescent"], value["id"]
