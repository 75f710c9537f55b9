"""GPUs over time, hour by hour, from the exact metering."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import NamedTuple

from django.db.models import Q, QuerySet

from gpuplatform.common.together import read_together
from queues.access import Actor, visible
from queues.models import ClusterQueue
from scheduling.engine.machines import GPU
from scheduling.engine.terms import Holding
from scheduling.models import QuotaInterval, UsageInterval

HOUR = timedelta(hours=1)
DAYS_SHOWN = 7


class Window(NamedTuple):
    """A half-open stretch of time."""

    start: datetime
    end: datetime


class Stretch(NamedTuple):
    """An amount held from ``start`` to ``end``; no end: still held."""

    start: datetime
    end: datetime | None
    amount: int


@dataclass(frozen=True, slots=True)
class HourlyUse:
    """Mean GPUs in each hour of a window; GPU-hours are their sum."""

    hours: Sequence[datetime]
    own: Sequence[float]
    borrowed: Sequence[float]
    nominal: Sequence[float]
    elapsed: float = 1.0  # of the running hour, which is the last one

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was held and nothing promised."""
        return not any(self.own) and not any(self.borrowed) and not any(self.nominal)

    @property
    def mean_used(self) -> float:
        """Return the mean of all GPUs held, over the time that is over."""
        return self._mean(self.own) + self._mean(self.borrowed)

    @property
    def mean_nominal(self) -> float:
        """Return the mean promise."""
        return self._mean(self.nominal)

    def _mean(self, means: Sequence[float]) -> float:
        over = len(self.hours) - 1 + self.elapsed
        return gpu_hours(means, self.elapsed) / over if over > 0 else 0.0


def last_days(now: datetime, days: int = DAYS_SHOWN) -> Window:
    """Return the whole hours of the last days, the running hour included."""
    end = now.replace(minute=0, second=0, microsecond=0) + HOUR
    return Window(end - timedelta(days=days), end)


def hours_of(window: Window) -> list[datetime]:
    """Return the beginning of each hour."""
    count = int((window.end - window.start) / HOUR)
    return [window.start + HOUR * index for index in range(count)]


def hourly_means(stretches: Iterable[Stretch], window: Window, now: datetime) -> list[float]:
    """Return the mean amount of each hour; of the running one, of the part that is over.

    Both ends of a stretch spill into their hour by the part they cover; the whole hours
    between are added once, as a step up and a step down. Cost: O(stretches + hours).
    """
    count = int((window.end - window.start) / HOUR)
    partial, steps = [0.0] * (count + 1), [0.0] * (count + 2)
    for start, end, amount in stretches:
        first = max((start - window.start) / HOUR, 0.0)
        last = min((min(end or now, now) - window.start) / HOUR, float(count))
        if last <= first:
            continue
        opened, closed = int(first), int(last)
        if opened == closed:
            partial[opened] += amount * (last - first)
            continue
        partial[opened] += amount * (opened + 1 - first)
        partial[closed] += amount * (last - closed)
        steps[opened + 1] += amount
        steps[closed] -= amount
    means, held = [], 0.0
    for index in range(count):
        held += steps[index]
        means.append(round(held + partial[index], 3))
    if means and (elapsed := elapsed_of(window, now)):
        means[-1] = round(means[-1] / elapsed, 3)
    return means


def most_at_once(stretches: Iterable[Stretch], window: Window, now: datetime) -> int:
    """Return the largest amount held at one instant of the window. Cost: O(n log n)."""
    steps = []
    for start, end, amount in stretches:
        first, last = max(start, window.start), min(end or now, now, window.end)
        if first < last:
            steps += [(first, amount), (last, -amount)]
    held = most = 0
    for _, step in sorted(steps):  # at one instant what ends goes before what begins
        held += step
        most = max(most, held)
    return most


def elapsed_of(window: Window, now: datetime) -> float:
    """Return how much of the window's last hour is over, 0 to 1."""
    return max(0.0, min(1.0, (now - (window.end - HOUR)) / HOUR))


def gpu_hours(means: Sequence[float], elapsed: float) -> float:
    """Return the GPU-hours behind hourly means whose last hour is only partly over."""
    return sum(means[:-1]) + means[-1] * elapsed if means else 0.0


def usage_in(window: Window, actor: Actor) -> QuerySet[UsageInterval]:
    """Return the GPU usage that touches a window and that the actor may see."""
    touching = UsageInterval.objects.filter(resource=GPU, started_at__lt=window.end).filter(
        Q(ended_at=None) | Q(ended_at__gt=window.start)
    )
    return visible(touching, actor)


def promises_in(window: Window, queues: Iterable[str] | None) -> QuerySet[QuotaInterval]:
    """Return the GPU promises that touch a window; None: of all queues."""
    touching = QuotaInterval.objects.filter(resource=GPU, started_at__lt=window.end).filter(
        Q(ended_at=None) | Q(ended_at__gt=window.start)
    )
    return touching if queues is None else touching.filter(cluster_queue__in=queues)


class Use(NamedTuple):
    """What was held and promised in a window; loans by queue, and whose that was at last."""

    window: Window
    own: list[Stretch]
    loans: dict[str, list[Stretch]]
    teams: dict[str, int | None]
    promises: list[Stretch]


def use_in(window: Window, actor: Actor, queue: str = "") -> Use:
    """Return what was held and promised, of one queue or of all the actor may see. 1 query."""
    usage, promises = usage_in(window, actor), promises_in(window, None)
    if queue:
        usage = usage.filter(cluster_queue=queue)
    if queue or not actor.sees_everything:
        own = visible(ClusterQueue.objects.all(), actor)
        own = own.filter(name=queue) if queue else own
        promises = promises.filter(cluster_queue__in=own.values("name"))
    held, promised = read_together(
        usage.order_by().values_list(
            "started_at", "ended_at", "amount", "holding", "cluster_queue", "team_id"
        ),
        promises.order_by().values_list("started_at", "ended_at", "nominal"),
    )
    found = Use(window, [], {}, {}, [Stretch(*row) for row in promised])
    last: dict[str, datetime] = {}
    for start, end, amount, holding, name, team in held:
        stretch = Stretch(start, end, amount)
        if holding != Holding.BORROWED.value:
            found.own.append(stretch)
            continue
        found.loans.setdefault(name, []).append(stretch)
        if name not in last or start >= last[name]:
            last[name], found.teams[name] = start, team
    return found


def quota_use(use: Use, now: datetime) -> HourlyUse:
    """Return use against nominal, hour by hour."""
    window = use.window
    return HourlyUse(
        hours=hours_of(window),
        own=hourly_means(use.own, window, now),
        borrowed=hourly_means(chain.from_iterable(use.loans.values()), window, now),
        nominal=hourly_means(use.promises, window, now),
        elapsed=elapsed_of(window, now),
    )


class Borrower(NamedTuple):
    """A borrowing queue's hours. ``team``: the key of its team, None where nobody owns it."""

    queue: str
    team: int | None
    means: list[float]
    gpu_hours: float
    most: int = 0  # GPUs at one instant


def borrowed_over_time(use: Use, now: datetime) -> tuple[list[datetime], list[Borrower]]:
    """Return borrowed GPUs hour by hour for each borrowing queue, largest first."""
    window, borrowers = use.window, []
    elapsed = elapsed_of(window, now)
    for queue, rows in use.loans.items():
        means = hourly_means(rows, window, now)
        most = most_at_once(rows, window, now)
        hours = gpu_hours(means, elapsed)
        borrowers.append(Borrower(queue, use.teams[queue], means, hours, most))
    return hours_of(window), sorted(borrowers, key=lambda b: (-b.gpu_hours, b.queue))


class Day(NamedTuple):
    """GPU-hours of one day: the table beside a chart."""

    day: str
    own: float
    borrowed: float
    nominal: float


def by_day(use: HourlyUse) -> list[Day]:
    """Return the sums of each UTC day of a window."""
    sums: dict[str, list[float]] = {}
    columns = (use.own, use.borrowed, use.nominal)
    for index, hour in enumerate(use.hours):
        part = use.elapsed if index == len(use.hours) - 1 else 1.0
        day = sums.setdefault(hour.strftime("%Y-%m-%d"), [0.0, 0.0, 0.0])
        for place, column in enumerate(columns):
            day[place] += column[index] * part
    return [Day(name, *values) for name, values in sums.items()]
