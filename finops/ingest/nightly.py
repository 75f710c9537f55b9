"""What happens by itself: load what is due, forget answers that are older than they must be kept.

Each run does a bounded piece of work and stops; the next one goes on where this one ended,
because it looks at the rows only.
"""

import time
from datetime import timedelta

from finops.ingest.due import due_days
from finops.ingest.loading import load_day
from finops.models import Fetch, Payload, Source
from finops.models.sources import Outcome
from gpuplatform.common import clock
from gpuplatform.common.problems import Rejected

BUDGET_S = 240.0  # of one run; the day that is being loaded then is finished
KEPT = timedelta(days=400)  # thirteen months (finops.md 4.6)
AT_ONCE = 500


def load_due(budget_s: float = BUDGET_S) -> list[Fetch]:
    """Load the days that are due of every source that is switched on, within a time budget."""
    until = time.monotonic() + budget_s
    found: list[Fetch] = []
    for source in Source.objects.filter(enabled=True):
        found += _load_source(source, until)
    return found


def _load_source(source: Source, until: float) -> list[Fetch]:
    found: list[Fetch] = []
    for day in due_days(source, clock.now()):
        if time.monotonic() > until:
            break
        try:
            found.append(load_day(source, day))
        except Rejected:  # another process is at it
            break
        if found[-1].code == "SOURCE_UNREACHABLE":
            break  # its other days would fail as well
    return found


def forget_old_answers() -> int:
    """Drop kept answers after thirteen months; what waits for a judgement stays."""
    waiting = Fetch.objects.filter(outcome=Outcome.QUARANTINED).values("payload")
    old = Payload.objects.filter(kept_at__lt=clock.now() - KEPT).exclude(pk__in=waiting)
    ids = list(old.values_list("pk", flat=True)[:AT_ONCE])
    deleted, _by_table = Payload.objects.filter(pk__in=ids).delete()
    return deleted
