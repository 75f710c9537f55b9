"""Counters of GPU-hours of a window: page, file and answer ask here."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.translation import gettext as _

from finops.sources.windows import Window
from finops.spans import BadSpanError, span_of
from gpuplatform.common.problems import Problem, Rejected
from queues.access import Actor
from scheduling.counters import Counters
from scheduling.selectors.counters import GROUPS, counters_by

HOURS_WINDOW = "month"


@dataclass(frozen=True, slots=True)
class HoursByGroup:
    """The counters of a window by team, queue or workload, as far as the reader sees them."""

    window: Window
    group: str
    rows: tuple[tuple[str, Counters], ...]

    @property
    def total(self) -> Counters:
        """Return all groups together."""
        return sum((counters for _name, counters in self.rows), Counters())


def hours_by(actor: Actor, window: str, group: str, now: datetime) -> HoursByGroup:
    """Return the counters of a window in words, by team, queue or workload.

    Raises:
        Rejected: no such window or group.
    """
    problems = []
    if group not in GROUPS:
        said = _("{group} is none of {allowed}.")
        said = said.format(group=group[:40], allowed=", ".join(GROUPS))
        problems.append(Problem("group", "BAD_VALUE", said))
    found = None
    try:
        found = span_of(window, now, settings.BILLING_TIME_ZONE)
    except BadSpanError as error:
        problems.append(Problem("window", "BAD_VALUE", str(error)))
    if problems or found is None:
        raise Rejected(problems)
    return HoursByGroup(found, group, tuple(counters_by(actor, group, found.start, found.end)))
