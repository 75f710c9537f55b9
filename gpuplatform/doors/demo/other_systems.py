"""What an OpenCost and a LiteLLM would have said, so that bills rest on them too.

June 2026 is that of the articles: 380, 210 and 80 million tokens at 0.78 and 0.35 EUR per million,
and 14.40 EUR of storage that no pod mounts. The sources are switched off afterwards: there is
nothing behind them that could be asked.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings

from finops.mapping_services import set_mappings
from finops.models import AssetRow, CostRow, Coverage, Source, TeamDayRow, TokenRow
from finops.models.sources import PLANES, SourceKind, Stored
from finops.specs import MappingSpec
from gpuplatform.common import clock
from gpuplatform.doors.demo import history
from gpuplatform.doors.demo.platform import GPU
from queues.models import User
from scheduling.models import CapacityInterval, UsageInterval

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
PLACES = Decimal("0.00001")  # as OpenCost rounds
BATCH = 1000
JUNE_DAYS = 30
HOSTED = "claude-hosted"  # somebody else's model: its tokens are real money


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks which model how much: tokens of a month of 30 days, EUR per million."""

    team_id: str
    model: str
    tokens: int
    price: str
    tags: tuple[str, ...] = ()


ARTICLES = (
    Asking("equipo-datos", "llama-3-70b-onprem", 380_000_000, "0.78", ("chat",)),
    Asking("equipo-ia", "llama-3-8b-onprem", 210_000_000, "0.35", ("research", "batch")),
    Asking("equipo-plataforma", "llama-3-8b-onprem", 80_000_000, "0.35", ("batch",)),
    Asking("equipo-antiguo", "llama-3-8b-onprem", 70_000, "0.35"),
)
LATELY = (
    Asking("team-search", HOSTED, 90_000_000, "2.40", ("ranking",)),
    Asking("team-recsys", HOSTED, 45_000_000, "2.40", ("ranking", "nightly")),
    Asking("team-bio", "llama-3-70b-onprem", 60_000_000, "0.78", ("papers",)),
    Asking("team-lab", HOSTED, 3_000_000, "2.40"),
)


def connect(now: datetime, days: int, users: dict[str, User]) -> None:
    """Write what both would have said of June 2026 and of the last ``days``, and whose it is."""
    opencost = _source(SourceKind.OPENCOST, "opencost")
    gateway = _source(SourceKind.LITELLM_API, "litellm")
    every = list(_days(history.JUNE, now))
    june, lately = every[:JUNE_DAYS], every[-days:] if days else []
    for day in every:
        for source in (opencost, gateway):
            _cover(source, day)
    _tokens(gateway, june, ARTICLES)
    _tokens(gateway, lately, LATELY)
    _iron(opencost, every)
    CostRow.objects.bulk_create(_storage(opencost, june))
    with clock.at(history.JUNE):
        set_mappings(list(_mappings()), users["fin"], "The gateway's teams, as agreed")


def _days(start: datetime, now: datetime) -> Iterator[datetime]:
    """Yield the days that are over."""
    while start + DAY <= now:
        yield start
        start += DAY


def _mappings() -> Iterator[MappingSpec]:
    """Yield whose the gateway's teams are; two are left for somebody to assign."""
    for team in ("datos", "ia", "plataforma"):
        yield MappingSpec("litellm_team", f"equipo-{team}", team)
    for team in ("search", "recsys", "bio"):
        yield MappingSpec("litellm_team", f"team-{team}", team)
    for model, namespace, speed, gpus in (
        ("llama-3-70b-onprem", "ns-datos", 2000, 4),
        ("llama-3-8b-onprem", "ns-ia", 1100, 1),
    ):
        yield MappingSpec(
            "deployment",
            model,
            namespace=namespace,
            tokens_per_second=Decimal(speed),
            gpus=Decimal(gpus),
        )
    yield MappingSpec("deployment", HOSTED, namespace="hosted-models")
    yield MappingSpec("mode", "hosted-models", mode="external")


def _source(kind: SourceKind, name: str) -> Source:
    return Source.objects.create(
        name=name,
        kind=kind,
        plane=PLANES[kind],
        currency=settings.CURRENCY,
        time_zone="UTC",
        first_day=history.JUNE.date(),
        enabled=False,
    )


def _cover(source: Source, day: datetime) -> None:
    Coverage.objects.create(
        source=source,
        day=day.date(),
        starts_at=day,
        ends_at=day + DAY,
        stored=Stored.LOADED,
        tried_at=day + DAY,
    )


# ---- tokens -------------------------------------------------------------------------------------
def _tokens(source: Source, days: list[datetime], asking: tuple[Asking, ...]) -> None:
    rows, sums = [], []
    for one in asking:
        for number, day in enumerate(days):
            count = _of_day(one.tokens, number)
            spend = count * Decimal(one.price) / 1_000_000
            key = f"demo-{one.team_id}-{day:%Y%m%d}"
            columns = {"team_id": one.team_id, "model_group": one.model, "model": one.model}
            counted = {"prompt_tokens": count - count // 4, "completion_tokens": count // 4}
            about = {"source": source, "day": day.date(), "key": key, "spend": spend}
            rows.append(
                TokenRow(
                    **about,
                    **columns,
                    **counted,
                    request_id=key,
                    at=day + 12 * HOUR,
                    key_alias=f"key-{one.team_id}",
                    tags=list(one.tags),
                )
            )
            sums.append(TeamDayRow(**about, **columns, **counted, requests=1))
    TokenRow.objects.bulk_create(rows, batch_size=BATCH)
    TeamDayRow.objects.bulk_create(sums, batch_size=BATCH)


def _of_day(month: int, number: int) -> int:
    """Return the tokens of a day: more on some than on others, and 30 days are the month."""
    tenth, place = month // (JUNE_DAYS * 10), number % JUNE_DAYS
    even = month * (place + 1) // JUNE_DAYS - month * place // JUNE_DAYS
    return even + tenth * ((place % 3) - 1)


# ---- machines -----------------------------------------------------------------------------------
def _iron(source: Source, days: list[datetime]) -> None:
    """Write the use of namespaces and the nodes as our own metering has them, day by day."""
    hours: dict[tuple[datetime, str], Decimal] = {}
    used = UsageInterval.objects.filter(resource=GPU).order_by()
    columns = ("namespace", "amount", "started_at", "ended_at")
    for namespace, amount, started_at, ended_at in used.values_list(*columns):
        for day, length in _cut(days, started_at, ended_at):
            hours[day, namespace] = hours.get((day, namespace), Decimal(0)) + amount * length
    CostRow.objects.bulk_create(
        (_cost(source, day, name, gpu_hours=held) for (day, name), held in sorted(hours.items())),
        batch_size=BATCH,
    )
    there = CapacityInterval.objects.filter(resource=GPU).order_by()
    nodes: dict[tuple[datetime, str], Decimal] = {}
    for node, amount, started_at, ended_at in there.values_list("node", *columns[1:]):
        for day, length in _cut(days, started_at, ended_at):
            nodes[day, node] = nodes.get((day, node), Decimal(0)) + amount * length
    AssetRow.objects.bulk_create(
        (
            AssetRow(
                source=source,
                day=day.date(),
                key=node,
                kind="Node",
                name=node,
                gpu_hours=held.quantize(PLACES),
            )
            for (day, node), held in sorted(nodes.items())
        ),
        batch_size=BATCH,
    )


def _cut(
    days: list[datetime], started_at: datetime, ended_at: datetime | None
) -> Iterator[tuple[datetime, Decimal]]:
    """Yield the days that a row has a part in, with its hours in each."""
    first = max(0, (started_at - days[0]) // DAY)
    for day in days[first:]:
        start, end = max(started_at, day), min(ended_at or day + DAY, day + DAY)
        if start >= end:
            break
        yield day, Decimal((end - start) // timedelta(seconds=1)) / 3600


def _storage(source: Source, days: list[datetime]) -> Iterator[CostRow]:
    """Yield 14.40 EUR of storage that nothing mounts, over the month."""
    for day in days:
        yield _cost(source, day, "__unmounted__", pv_cost=Decimal("0.48"))


def _cost(source: Source, day: datetime, namespace: str, **amounts: Decimal) -> CostRow:
    return CostRow(
        source=source,
        day=day.date(),
        key=namespace,
        namespace=namespace,
        starts_at=day,
        ends_at=day + DAY,
        first_at=day,
        last_at=day + DAY,
        **{name: amount.quantize(PLACES) for name, amount in amounts.items()},
    )
