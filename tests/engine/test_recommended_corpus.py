"""The recommended profile on the recorded scenarios: sound in every cycle, and then at rest."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scheduling.engine.invariants import violations
from scheduling.engine.plan import Plan
from scheduling.engine.profile import Profile
from scheduling.engine.scenario import loop
from scheduling.engine.scenario.reader import read_scenario
from scheduling.engine.snapshot import Snapshot

CORPUS = Path("conformance", "admission")
CUT_SHORT = {"admission-fair-sharing-08"}  # by its own max_cycles
SAMPLE = 80  # of how many scenarios of a large file one is run in the normal suite


@pytest.fixture(autouse=True)
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the oracle about every plan."""
    decide = loop.decide

    def decide_and_check(snapshot: Snapshot) -> Plan:
        plan = decide(snapshot)
        assert violations(snapshot, plan) == ()
        return plan

    monkeypatch.setattr(loop, "decide", decide_and_check)


def restless(file: Path, step: int = 1) -> set[str]:
    """Run every ``step``-th scenario. Returns those that did not come to rest."""
    content = file.read_bytes()
    scenarios: list[Any] = json.loads(
        gzip.decompress(content) if file.suffix == ".gz" else content
    )
    return {
        value["id"]
        for value in scenarios[::step]
        if not loop.run(read_scenario(value), Profile.recommended())["quiescent"]
    }


def test_hand_made(shared: Path) -> None:
    files = sorted((shared / CORPUS).glob("*/*.json"))
    assert len(files) > 10
    assert set[str]().union(*(restless(file) for file in files)) <= CUT_SHORT


def test_a_sample_of_the_random_ones(shared: Path) -> None:
    for file in sorted((shared / CORPUS).glob("*/*.json.gz")):
        assert restless(file, SAMPLE) == set()


@pytest.mark.long
def test_all_random_ones(shared: Path) -> None:
    for file in sorted((shared / CORPUS).glob("*/*.json.gz")):
        assert restless(file) == set()
