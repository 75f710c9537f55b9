"""Recorded months come out as they were recorded: every line, total, memo row and finding."""

import gzip
from pathlib import Path

import pytest

from finops.allocation.documents import differences, parse
from finops.allocation.encoding import outcome_of

CORPUS = Path("conformance", "finops")
HAND = (
    "bad-facts",
    "loans",
    "mapping",
    "nodes",
    "policy",
    "resources",
    "seed-month",
    "serving",
    "shared",
    "time",
    "tokens",
)
RANDOM = ("0000", "0050", "0100", "0150", "0200", "0250")


def differing(file: Path) -> tuple[list[str], int]:
    """Return what differs, and how many scenarios there are."""
    content = file.read_bytes()
    scenarios = parse(gzip.decompress(content) if file.suffix == ".gz" else content)
    found = [
        f"{one['id']}: {line}"
        for one in scenarios
        for line in differences(one["expected"], outcome_of(one["facts"]))
    ]
    return found, len(scenarios)


@pytest.mark.parametrize("theme", HAND)
def test_hand_made_months(theme: str, shared: Path) -> None:
    found, count = differing(shared / CORPUS / "hand" / f"{theme}.json")
    assert found == []
    assert count


@pytest.mark.parametrize("part", RANDOM)
def test_random_months(part: str, shared: Path) -> None:
    assert differing(shared / CORPUS / "random" / f"{part}.json.gz") == ([], 50)


def test_every_recorded_file_is_tried(shared: Path) -> None:
    there = {path.name for path in (shared / CORPUS).glob("*/*.json*")}
    assert there == {f"{name}.json" for name in HAND} | {f"{name}.json.gz" for name in RANDOM}
