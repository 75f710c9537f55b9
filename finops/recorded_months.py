"""A month of another platform as facts: who ran how many GPUs each hour, and whose quota when.

Two tables, as published traces have them: hourly means by team, and quotas by team from a day on
(``total`` is the cluster). Quotas are isolated: nobody lends. Pure.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from finops.allocation.bill import chargeback
from finops.allocation.facts import (
    Capacity,
    Facts,
    IdlePolicy,
    Instant,
    Period,
    Policy,
    Price,
    Quota,
    Team,
    Usage,
    instant,
)
from finops.allocation.facts import Mapping as Owner
from finops.allocation.money import round_half_up
from finops.allocation.places import team as account_of
from gpuplatform.common.periods import is_day

TOTAL = "total"  # the row of the whole cluster
CLUSTER, FLAVOR, PLATFORM = "recorded", "gpu", "platform"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LONGEST_H = 24 * 400
HOURLY = ("vc", "hour", "running_gpus")
QUOTAS = ("vc", "date", "gpus")


class BadTableError(ValueError):
    """A table that says something impossible; the sentence names its line."""


@dataclass(frozen=True, slots=True)
class Quotum:
    """GPUs that a team is promised on the days ``[first, after)``."""

    first: date
    after: date
    gpus: int

    @property
    def days(self) -> int:
        """Return for how many days."""
        return (self.after - self.first).days


@dataclass(frozen=True, slots=True)
class Recorded:
    """A month as two tables tell it: GPUs by team and hour, and the quotas in force."""

    first: date
    hours: int
    running: Mapping[str, Mapping[int, Fraction]]
    quotas: Mapping[str, tuple[Quotum, ...]]
    capacity: tuple[Quotum, ...]

    @property
    def teams(self) -> tuple[str, ...]:
        """Return whoever ran something, by name."""
        return tuple(sorted(self.running))


@dataclass(frozen=True, slots=True)
class Shown:
    """What the month is for one team: GPU-hours promised, used and beyond its quota; money."""

    team: str
    quotas: tuple[Quotum, ...]
    promised: Fraction
    used: Fraction
    beyond: Fraction
    idle: Fraction
    amounts: Mapping[str, Fraction]  # use, idle and all, in whole cents

    @property
    def utilisation(self) -> Fraction:
        """Return what of its promise was used, in percent."""
        return 100 * (self.used - self.beyond) / self.promised if self.promised else Fraction(0)


@dataclass(frozen=True, slots=True)
class Showback:
    """The month of all teams; ``unshared`` is what no team bears, ``total`` what all cost."""

    rows: tuple[Shown, ...]
    capacity: Fraction
    used: Fraction
    unshared: Fraction
    total: Fraction


def read_month(hourly: str, quotas: str, first: date) -> Recorded:
    """Return the month that two tables with a head line tell, beginning with ``first``.

    Raises:
        BadTableError: a column is missing, a number is none, a team's hour stands twice.
    """
    running: dict[str, dict[int, Fraction]] = defaultdict(dict)
    for line, row in _rows(hourly, HOURLY):
        team, hour = row["vc"], int(_number(row["hour"], line))
        if hour in running[team] or not 0 <= hour < LONGEST_H:
            raise BadTableError(f"line {line}: hour {hour} of {team} cannot be, or stands twice")
        running[team][hour] = _number(row["running_gpus"], line)
    if not running:
        raise BadTableError("no hour of anybody")
    hours = 1 + max(hour for found in running.values() for hour in found)
    after = first + timedelta(days=-(-hours // 24))
    changes: dict[str, dict[date, int]] = defaultdict(dict)
    for line, row in _rows(quotas, QUOTAS):
        changes[row["vc"]][_date(row["date"], line)] = int(_number(row["gpus"], line))
    in_force = {name: tuple(_in_force(found, first, after)) for name, found in changes.items()}
    if not in_force.get(TOTAL):
        raise BadTableError(f"no row of {TOTAL}: what stands there is not known")
    return Recorded(first, hours, running, in_force, in_force.pop(TOTAL))


def facts_of(month: Recorded, gpu_hour: Fraction, idle: IdlePolicy) -> Facts:
    """Return the facts of the month: a queue and a team by name, one flavor, one price."""
    begin = datetime.combine(month.first, datetime.min.time(), UTC)
    period = Period(instant(begin), instant(begin + month.hours * HOUR))
    owned = [(name, name if name in month.running else PLATFORM) for name in month.quotas]
    return Facts(
        period=period,
        teams=tuple(Team(name) for name in (*month.teams, PLATFORM)),
        policy=Policy(idle=idle),
        mappings=tuple(Owner("queue", name, team) for name, team in owned),
        prices=(Price(FLAVOR, gpu_hour),),
        capacity=tuple(
            Capacity(CLUSTER, f"cluster-{n}", FLAVOR, one.gpus, _at(one.first), end=_at(one.after))
            for n, one in enumerate(month.capacity)
        ),
        quotas=tuple(
            Quota(CLUSTER, name, FLAVOR, one.gpus, start=_at(one.first), end=_at(one.after))
            for name, found in sorted(month.quotas.items())
            for one in found
        ),
        usage=tuple(_usage(month, begin)),
    )


def showback(month: Recorded, gpu_hour: Fraction, idle: IdlePolicy) -> Showback:
    """Return what each team of the month used, left idle, and would pay for it."""
    outcome = chargeback(facts_of(month, gpu_hour, idle))
    queues = {row.queue: row for row in outcome.memo.queues}
    amounts: dict[str, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    names = {account_of(name): name for name in month.teams}
    unshared = Fraction(0)
    for line in outcome.lines:
        name, amount = names.get(line.account), Fraction(line.amount)
        if name is None:
            unshared += amount
            continue
        kind = "use" if line.origin == "direct" else "idle"
        amounts[name][kind] += amount
        amounts[name]["all"] += amount
    rows = tuple(
        Shown(
            name,
            month.quotas.get(name, ()),
            queues[name].nominal,
            queues[name].held,
            queues[name].borrowed,
            queues[name].nominal - (queues[name].held - queues[name].borrowed),
            amounts[name],
        )
        for name in month.teams
    )
    memo = outcome.memo.gpu_hours[0]
    total = sum((Fraction(line.amount) for line in outcome.lines), Fraction(0))
    return Showback(rows, memo.capacity, memo.used, unshared, total)


def table_of(found: Showback, currency: str) -> str:
    """Return the month as a table of text, a line for each team."""
    head = ("team", "quota in force (GPUs, days)", "promised", "used", "beyond", "idle", "used %")
    rows: list[tuple[str, ...]] = [(*head, "use", "idle", f"total {currency}")]
    for row in found.rows:
        quotas = ", ".join(f"{one.gpus} ({one.days} d)" for one in row.quotas) or "-"
        hours = (_shown(one) for one in (row.promised, row.used, row.beyond, row.idle))
        money = (_shown(row.amounts[kind], 2) for kind in ("use", "idle", "all"))
        rows.append((row.team, quotas, *hours, _shown(row.utilisation), *money))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)  # noqa: PLR2004  # texts
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    share = 100 * found.used / found.capacity
    used = f"{_shown(found.used)} of {_shown(found.capacity)} GPU-hours used ({_shown(share)} %)"
    rest = f"{_shown(found.unshared, 2)} {currency} are nobody's"
    return "\n".join([*lines, f"{used}; {rest}, {_shown(found.total, 2)} {currency} in all"])


def _usage(month: Recorded, begin: datetime) -> Iterator[Usage]:
    for team, hours in sorted(month.running.items()):
        for hour, gpus in sorted(hours.items()):
            start = begin + hour * HOUR
            if gpus:
                yield Usage(
                    f"{team}-{hour}",
                    CLUSTER,
                    FLAVOR,
                    gpus,
                    instant(start),
                    queue=team,
                    end=instant(start + HOUR),
                )


def _in_force(changes: Mapping[date, int], first: date, after: date) -> Iterator[Quotum]:
    """Yield the quotas in force from ``first`` on; a change holds from its day."""
    days = sorted(changes)
    since = [max(day, first) for day in days]
    until = [*since[1:], after]
    for day, start, end in zip(days, since, until, strict=True):
        if start < min(end, after):
            yield Quotum(start, min(end, after), changes[day])


def _rows(text: str, columns: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(text.splitlines())
    if len({*(reader.fieldnames or ())}) < len(reader.fieldnames or ()):
        raise BadTableError("a column stands twice in the head")
    if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
        raise BadTableError(f"no column {', '.join(missing)}")
    for row in reader:
        if None in row or None in row.values():
            raise BadTableError(f"line {reader.line_num}: another number of cells than the head")
        yield reader.line_num, row


def _number(text: str, line: int) -> Fraction:
    try:
        found = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        found = Fraction(-1)
    if found < 0 or "/" in text:
        raise BadTableError(f"line {line}: {text[:40]!r} is no number of GPUs or hours")
    return found


def _date(text: str, line: int) -> date:
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        day = None
    if day is None or not is_day(day):
        raise BadTableError(f"line {line}: {text[:40]!r} is no day")
    return day


def _at(day: date) -> Instant:
    return instant(datetime.combine(day, datetime.min.time(), UTC))


def _shown(number: Fraction, places: int = 1) -> str:
    return f"{round_half_up(number, places):,}"
