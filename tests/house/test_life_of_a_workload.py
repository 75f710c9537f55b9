"""The page about a workload's life says what the code does."""

from pathlib import Path

import pytest

from gpuplatform.common import reasons
from scheduling.engine.terms import EvictionReason, Status
from scheduling.steps import MEANINGS, steps_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "life-of-a-workload.md"
TEXT = PAGE.read_text()
DRAWING = TEXT.split("```")[1]


def test_the_page_prints_the_table_of_steps():
    assert steps_table() in TEXT, f"put this into {PAGE.name}:\n{steps_table()}"


@pytest.mark.parametrize("status", Status)
def test_the_drawing_names_every_state(status: Status):
    assert status.value.upper() in DRAWING


@pytest.mark.parametrize("event", sorted({step.event for step in MEANINGS}))
def test_the_drawing_names_every_event(event: str):
    assert event in DRAWING or event == "reservation_dropped"


@pytest.mark.parametrize("reason", EvictionReason)
def test_the_page_and_the_registry_name_every_reason_of_an_eviction(reason: EvictionReason):
    assert f"`{reason.value}`" in TEXT
    assert reason.value in reasons.REGISTRY
