"""A clock that only moves when told to."""

from collections.abc import Iterator

import pytest
import time_machine

from tests.scheduling.loop.world import NOON


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """Noon of 1 June 2026, standing still."""
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller
