"""Beat goes on where the clock of its machine is set back, or ahead."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from celery import Celery

from gpuplatform.common.timetable import SteadyScheduler

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Noted(SteadyScheduler):
    """Notes what it would send."""

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        self.sent.append(entry.name)

    def sent_within(self, clock: Any, seconds: float) -> set[str]:
        """Return what is sent while so many seconds pass."""
        self.sent: list[str] = []
        end = datetime.now(UTC) + timedelta(seconds=seconds)
        while datetime.now(UTC) <= end:
            pause = self.tick()
            clock.shift(timedelta(seconds=max(pause, 0.01)))
        return set(self.sent)


@pytest.fixture
def clock() -> Iterator[Any]:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


def beat(folder: Path) -> Noted:
    app = Celery(broker="memory://")
    app.conf.beat_schedule = {
        "cycle": {"task": "a", "schedule": 2.0},
        "watch": {"task": "b", "schedule": 30.0},
    }
    return Noted(app=app, schedule_filename=str(folder / "beat"))


@pytest.mark.parametrize("step", [HOUR, -HOUR, 24 * HOUR, -24 * HOUR])
def test_whatever_the_clock_does_everything_comes_in_its_time(
    tmp_path: Path, clock: Any, step: timedelta
):
    scheduler = beat(tmp_path)
    assert scheduler.sent_within(clock, 60) == {"cycle", "watch"}
    clock.shift(step)
    assert scheduler.sent_within(clock, 4) >= {"cycle"}
    assert scheduler.sent_within(clock, 60) == {"cycle", "watch"}
    assert scheduler.sent.count("cycle") == pytest.approx(30, abs=3)
    scheduler.close()


def test_a_beat_that_is_started_after_the_clock_was_set_back_goes_on(tmp_path: Path, clock: Any):
    before = beat(tmp_path)
    before.sent_within(clock, 60)
    before.close()
    clock.move_to(NOON - HOUR)
    after = beat(tmp_path)
    assert after.sent_within(clock, 4) >= {"cycle"}
    after.close()
