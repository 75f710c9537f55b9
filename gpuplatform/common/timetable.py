"""Beat on machines whose clock may be set back.

Celery's scheduler thinks in the time of the wall: after a step of an hour back nothing would be
due for an hour, and the safety net under all wake-ups would be gone.
"""

from datetime import timedelta
from typing import Any

from celery.beat import PersistentScheduler


class SteadyScheduler(PersistentScheduler):
    """Celery's timetable in a file, which begins anew where a clock was set back."""

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due; return in how many seconds to look again."""
        for entry in self.schedule.values():
            now, last = entry.default_now(), entry.last_run_at
            if last is not None and last > now:
                # A span has passed and it is due; at an hour of the day it comes at the next one.
                entry.last_run_at = now - getattr(entry.schedule, "run_every", timedelta())
                self._heap = None  # where the others stand in the old time
        return float(super().tick(*args, **kwargs))
