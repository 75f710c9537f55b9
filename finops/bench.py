"""``manage.py bench bill``: a month of many workloads to its bill, and what is done with it."""

import random
import time
import tracemalloc
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction

from finops import billing
from finops.allocation.bill import chargeback
from finops.allocation.facts import Capacity, Facts, Mapping, Period, Price, Quota, Team, Usage
from finops.allocation.facts import instant as at
from finops.ingest.storing import replace_day
from finops.models import Bill, BillingPeriod, BillLine, Coverage, Source, TokenRow
from finops.models import Price as PriceRow
from finops.models.sources import PLANES, SourceKind, Stored
from finops.sources.rows import Request
from finops.sources.windows import day_window
from gpuplatform.common.pages import csv_rows
from queues.models import ClusterQueue
from queues.models import Team as TeamRow
from scheduling.bench.report import Figure, Goal, Report
from scheduling.bench.scratch import scratch_database
from scheduling.models import Admission, CapacityInterval, QuotaInterval, UsageInterval, Workload

START, DAYS = datetime(2026, 10, 1, tzinfo=UTC), 31
END = START + timedelta(days=DAYS)
AFTER = END + timedelta(days=1)
HOUR = timedelta(hours=1)
TEAMS, COHORTS, FLAVOR, GPU = 30, 5, "h100", "nvidia.com/gpu"
NODES = 250
BATCH = 1000
LARGE = 100_000  # workloads, of more than these no rows are written


class Work:
    """The work of the month: runs that begin at whole hours, by a seed."""

    def __init__(self, workloads: int, seed: int = 1) -> None:
        draw = random.Random(seed)  # noqa: S311 - no secret, the same month each time
        hours = DAYS * 24
        self.runs = [
            (
                number % TEAMS,
                draw.choice((1, 1, 2, 4, 8)),
                first := draw.randrange(hours - 1),
                min(hours, first + 1 + int(draw.expovariate(1 / 20))),
            )
            for number in range(workloads)
        ]


def facts_of(work: Work) -> Facts:
    """Return the month as facts: teams with a queue each, in cohorts that lend."""
    period = Period(at(START), at(END))
    return Facts(
        period=period,
        teams=tuple(Team(f"team-{n:02}") for n in range(TEAMS)),
        mappings=tuple(Mapping("queue", f"cq-{n:02}", f"team-{n:02}") for n in range(TEAMS)),
        prices=(Price(FLAVOR, 2),),
        capacity=tuple(Capacity("", f"node-{n}", FLAVOR, 8, at(START)) for n in range(NODES)),
        quotas=tuple(
            Quota("", f"cq-{n:02}", FLAVOR, NODES * 8 // TEAMS, cohort=f"c{n % COHORTS}")
            for n in range(TEAMS)
        ),
        usage=tuple(
            Usage(
                str(number),
                "",
                FLAVOR,
                gpus,
                at(START + first * HOUR),
                end=at(START + last * HOUR),
                queue=f"cq-{team:02}",
                namespace=f"ns-{team:02}",
            )
            for number, (team, gpus, first, last) in enumerate(work.runs)
        ),
    )


def add_arguments(parser: ArgumentParser) -> None:
    """Take the options of the bench."""
    parser.add_argument("--workloads", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)


def run(options: dict[str, Any]) -> Report:
    """Run the bench with its options."""
    return bench(*(options[name] for name in ("workloads", "requests", "lines", "repeat")))


def bench(workloads: int, requests: int, lines: int, repeat: int) -> Report:
    """Return the figures of a month of ``workloads``; with few of them its rows as well."""
    work = Work(workloads)
    facts = facts_of(work)
    seconds = [_timed(lambda: chargeback(facts)) for _ in range(repeat)]
    is_large = workloads > LARGE
    goals = [Goal("s-compute", min(seconds), 60.0 if is_large else 0.5)]
    figures: dict[str, Figure] = {"workloads": workloads, "teams": TEAMS, "days": DAYS}
    env: dict[str, Figure] = {}
    if not is_large:
        with scratch_database() as said:
            env |= said
            goals += list(_with_rows(work, requests, lines, figures))
    return Report("bill", env, figures, seconds, goals)


def _with_rows(
    work: Work, requests: int, lines: int, figures: dict[str, Figure]
) -> Iterator[Goal]:
    write_rows(work)
    took = _timed(lambda: billing.rebuild_draft("2026-10", now=AFTER))
    yield Goal("s-read-compute-write", took, 5.0)
    yield Goal("s-read-compute-write-floor", took, 15.0)
    figures["total"] = str(BillingPeriod.objects.get().total_cost)
    source = _gateway()
    took = _timed(lambda: _load(source, requests))
    yield Goal("s-requests-joined", took, 10.0)
    before = _fingerprint()
    _load(source, requests)
    yield Goal("rows-changed-by-a-repeat", 0.0 if _fingerprint() == before else 1.0, 0.0)
    yield from _csv(lines)


def write_rows(work: Work) -> None:
    """Write the month as metering does."""
    teams = TeamRow.objects.bulk_create(
        TeamRow(name=f"team-{n:02}", display_name=f"Team {n}") for n in range(TEAMS)
    )
    ClusterQueue.objects.bulk_create(
        ClusterQueue(name=f"cq-{n:02}", team=team) for n, team in enumerate(teams)
    )
    PriceRow.objects.create(
        unit="gpu_hour", subject=FLAVOR, amount=2, valid_from=START, created_at=START
    )
    about = {"flavor": FLAVOR, "resource": GPU, "started_at": START}
    CapacityInterval.objects.bulk_create(
        CapacityInterval(node=f"node-{n}", amount=8, **about) for n in range(NODES)
    )
    QuotaInterval.objects.bulk_create(
        QuotaInterval(
            cluster_queue=f"cq-{n:02}",
            cohort=f"c{n % COHORTS}",
            nominal=NODES * 8 // TEAMS,
            **about,
        )
        for n in range(TEAMS)
    )
    _write_usage(work, teams)


def _write_usage(work: Work, teams: list[TeamRow]) -> None:
    workloads = Workload.objects.bulk_create(
        (
            Workload(namespace=f"ns-{team:02}", name=f"w{number}", team=teams[team], gpus=gpus)
            for number, (team, gpus, _first, _last) in enumerate(work.runs)
        ),
        batch_size=BATCH,
    )
    pairs = list(zip(workloads, work.runs, strict=True))
    admissions = Admission.objects.bulk_create(
        (
            Admission(
                workload=workload,
                cluster_queue=f"cq-{team:02}",
                admitted_at=START + first * HOUR,
                released_at=START + last * HOUR,
            )
            for workload, (team, _gpus, first, last) in pairs
        ),
        batch_size=BATCH,
    )
    UsageInterval.objects.bulk_create(
        (
            UsageInterval(
                admission=admission,
                workload=workload,
                team=teams[team],
                cluster_queue=f"cq-{team:02}",
                namespace=f"ns-{team:02}",
                flavor=FLAVOR,
                resource=GPU,
                amount=gpus,
                holding="nominal",
                started_at=START + first * HOUR,
                ended_at=START + last * HOUR,
            )
            for admission, (workload, (team, gpus, first, last)) in zip(
                admissions, pairs, strict=True
            )
        ),
        batch_size=BATCH,
    )


def _gateway() -> Source:
    kind = SourceKind.LITELLM_API
    source = Source.objects.create(
        name="gateway",
        kind=kind,
        plane=PLANES[kind],
        currency="EUR",
        time_zone="UTC",
        first_day=START.date(),
    )
    for number in range(DAYS):
        window = day_window(START.date() + timedelta(days=number))
        Coverage.objects.create(
            source=source,
            day=window.start.date(),
            starts_at=window.start,
            ends_at=window.end,
            stored=Stored.LOADED,
        )
    return source


def _load(source: Source, requests: int) -> None:
    """Store the month's requests day by day, and bill them."""
    for number in range(DAYS):
        window = day_window(START.date() + timedelta(days=number))
        rows = _requests(window.start, requests // DAYS)
        with transaction.atomic():
            replace_day(source, window.start.date(), window, rows)
    billing.rebuild_draft("2026-10", now=AFTER)


def _requests(start: datetime, count: int) -> Iterator[Request]:
    for number in range(count):
        key = f"{start:%d}-{number}"
        yield Request(
            key,
            key,
            start + timedelta(seconds=number % 86_000),
            f"litellm-{number % TEAMS}",
            "hash",
            "model",
            model_group=f"model-{number % 3}",
            prompt_tokens=900,
            completion_tokens=100,
            spend=Decimal("0.00078"),
        )


def _fingerprint() -> tuple[Any, ...]:
    lines = BillLine.objects.order_by("bill__team__name", "number")
    return (
        tuple(lines.values_list("bill__team__name", "kind", "quantity", "amount")),
        TokenRow.objects.count(),
        tuple(Bill.objects.order_by("team__name").values_list("total", flat=True)),
    )


def _csv(lines: int) -> Iterator[Goal]:
    """Yield how long a large file takes, and what a longer one needs more of memory."""
    took = _timed(lambda: _read(lines))
    yield Goal(f"s-csv-of-{lines}-lines", took, 5.0)
    small, large = _peak(lambda: _read(lines // 10)), _peak(lambda: _read(lines))
    yield Goal("csv-memory-over-that-of-a-tenth", large / small, 1.5)


def _read(lines: int) -> int:
    """Stream a file of that many lines to its end; return its bytes."""
    columns = ("team", "kind", "quantity", "unit_price", "amount")
    cells = {
        "team": "team-01",
        "kind": "gpu_direct",
        "quantity": Decimal("12.500000"),
        "unit_price": Decimal("2.00000000"),
        "amount": Decimal("25.00"),
    }
    return sum(map(len, csv_rows("lines", columns, (cells for _ in range(lines)))))


def _peak(act: Callable[[], object]) -> int:
    tracemalloc.start()
    act()
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def _timed(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began
