"""Let the demo move on while one looks: a short job now and then."""

import random
from datetime import timedelta

from django.conf import settings

from gpuplatform.common import clock
from gpuplatform.doors.demo.history import HABITS, SEED, Job
from gpuplatform.doors.demo.play import workload_of
from scheduling.engine.terms import Status
from scheduling.models import Workload
from scheduling.services import submit_workload

PREFIX = "quick-"
MOST_LIVE = 6  # short jobs at a time; the demo stays a picture, not a load test


def submit_next() -> Workload | None:
    """Submit the next short job, unless enough of them live already."""
    known = Workload.objects.filter(name__startswith=PREFIX)
    if not settings.DEMO or known.exclude(status=Status.FINISHED).count() >= MOST_LIVE:
        return None
    return submit_workload(workload_of(_job(known.count() + 1)), actor=None).workload


def _job(number: int) -> Job:
    dice = random.Random(SEED + number)  # noqa: S311 - the same stream in every demo
    team = dice.choice(sorted(HABITS))
    return Job(
        at=clock.now(),
        team=team,
        name=f"{PREFIX}{dice.choice(HABITS[team].names)}-{number:04d}",
        pods=1,
        gpus=dice.choice((1, 2, 4)),
        hours=timedelta(minutes=dice.randint(2, 8)) / timedelta(hours=1),
        priority=dice.choice(("research", "standard")),
        pool=HABITS[team].pool,
    )
