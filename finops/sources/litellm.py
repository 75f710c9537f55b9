"""What LiteLLM logs of requests and adds up by team, as rows. Pure.

Only what is named here is ever read or kept: prompts and answers stand in other fields of the
same rows (``messages``, ``response``, ``proxy_server_request``) and are passed over.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

import msgspec

from finops.sources import numbers
from finops.sources.decoding import decoded
from finops.sources.failures import SourceError
from finops.sources.rows import ZERO, Request, TeamDay, natural_key
from finops.sources.windows import Window

LOGS = "spend/logs/v2"  # of the API: requests
LONGEST = 255  # characters of a name that a column holds
HEALTH_CHECK = "litellm-internal-health-check"
TRUE = frozenset({"true", "1"})


class Breakdown(msgspec.Struct):
    """What a request cost, part by part."""

    total_cost: Decimal | None = None


class UsageValues(msgspec.Struct):
    """Tokens that the provider's own cache served."""

    cache_read_input_tokens: int | None = None


class Metadata(msgspec.Struct):
    """The fields of a request's metadata that are read."""

    user_api_key_alias: str | None = None
    user_api_key_team_alias: str | None = None
    status: str | None = None
    is_silent_experiment: bool | str | None = None
    cost_breakdown: Breakdown | None = None
    additional_usage_values: UsageValues | None = None


class Log(msgspec.Struct, rename={"started": "startTime"}):
    """A row of ``LiteLLM_SpendLogs``, as the API answers it or the table holds it."""

    request_id: str
    started: datetime
    spend: Decimal | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    api_key: str | None = None
    team_id: str | None = None
    model: str | None = None
    model_group: str | None = None
    model_id: str | None = None
    call_type: str | None = None
    cache_hit: str | bool | None = None
    status: str | None = None
    request_tags: list[str] | str | None = None
    metadata: Metadata | str | None = None


class LogPage(msgspec.Struct):
    """A page of ``/spend/logs/v2``; ``total`` stops counting at 10,000."""

    data: list[Log]
    total: int | None = None
    total_is_capped: bool | None = None


class Metrics(msgspec.Struct):
    """What is added up of a team's day."""

    spend: Decimal | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    api_requests: int | None = None
    failed_requests: int | None = None


class Entity(msgspec.Struct):
    """A team's part of a day."""

    metrics: Metrics


class Parts(msgspec.Struct):
    """A day taken apart."""

    entities: dict[str, Entity] = {}


class ActivityDay(msgspec.Struct):
    """A UTC day, or what of it stands on one page."""

    date: str
    breakdown: Parts


class PageMark(msgspec.Struct):
    """Whether another page follows."""

    has_more: bool = False


class Activity(msgspec.Struct):
    """A page of ``/team/daily/activity``; its totals are of the page only."""

    results: list[ActivityDay]
    metadata: PageMark


# ---- requests -----------------------------------------------------------------------------------
def scrubbed(path: str, body: bytes) -> bytes:
    """Return what of an answer may be kept: of requests, nothing but what is read.

    Of an answer that cannot be read, its length and hash are kept: it may hold prompts.
    """
    if path != LOGS:
        return body
    try:
        return msgspec.json.encode(decoded(body, LogPage))
    except SourceError:
        return f"{len(body)} bytes, SHA-256 {sha256(body).hexdigest()}".encode()


def requests_of(logs: Iterable[Log], window: Window) -> tuple[Request, ...]:
    """Return the requests that began in a window, each once, in the order of their ids.

    A request that comes twice, on two pages or on one, counts once; the last one is right.
    """
    found = {}
    for log in logs:
        at = _utc(log.started)
        if window.start <= at < window.end:
            found[log.request_id] = _request(log, at)
    return tuple(found[request_id] for request_id in sorted(found))


def _request(log: Log, at: datetime) -> Request:
    metadata = _metadata(log.metadata)
    tags = _tags(log.request_tags)
    usage, breakdown = metadata.additional_usage_values, metadata.cost_breakdown
    cost = breakdown.total_cost if breakdown else None
    silent = str(metadata.is_silent_experiment).lower() in TRUE
    return Request(
        key=natural_key(log.request_id),
        request_id=_name(log.request_id),
        at=at,
        team_id=_name(log.team_id),
        team_alias=_name(metadata.user_api_key_team_alias),
        key_hash=_name(log.api_key)[:128],
        key_alias=_name(metadata.user_api_key_alias),
        model=_name(log.model),
        model_group=_name(log.model_group) or _name(log.model),
        model_id=_name(log.model_id),
        call_type=_name(log.call_type)[:64],
        prompt_tokens=_count(log.prompt_tokens),
        completion_tokens=_count(log.completion_tokens),
        cache_read_tokens=_count(usage.cache_read_input_tokens if usage else None),
        spend=numbers.cost(log.spend or ZERO),
        breakdown_cost=None if cost is None else numbers.cost(cost),
        cache_hit=str(log.cache_hit).lower() in TRUE,
        failed=(log.status or metadata.status) == "failure",
        is_internal=silent or HEALTH_CHECK in tags,
        tags=tags,
    )


def _utc(at: datetime) -> datetime:
    """Return an instant; the database writes UTC without saying so."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _name(text: str | None) -> str:
    return (text or "").replace("\0", "")[:LONGEST]


def _count(number: int | None) -> int:
    """Return a count; a negative one is no count."""
    if number is not None and number < 0:
        raise SourceError("SOURCE_WRONG_SHAPE", problem=f"{number} tokens")
    return number or 0


def _metadata(given: Metadata | str | None) -> Metadata:
    """Return metadata, which some versions write as a text of JSON."""
    if isinstance(given, str):
        found: Metadata = decoded(given.encode() or b"{}", Metadata)
        return found
    return given or Metadata()


def _tags(given: list[str] | str | None) -> tuple[str, ...]:
    if isinstance(given, str):
        given = decoded(given.encode() or b"[]", list[str])
    return tuple(_name(tag) for tag in given or ())


# ---- days ---------------------------------------------------------------------------------------
def team_days(pages: Iterable[Activity], day: str) -> tuple[TeamDay, ...]:
    """Return what each team comes to on a UTC day, over all pages: a day may span several."""
    sums: dict[str, list[Any]] = defaultdict(lambda: [ZERO, 0, 0, 0, 0])
    for page in pages:
        for result in page.results:
            if result.date == day:
                for team, entity in result.breakdown.entities.items():
                    sums[team] = [
                        one + (more or 0)
                        for one, more in zip(sums[team], _measured(entity.metrics), strict=True)
                    ]
    return tuple(team_day((team,), *sums[team]) for team in sorted(sums))


def _measured(metrics: Metrics) -> tuple[Decimal | int | None, ...]:
    return (
        metrics.spend,
        metrics.prompt_tokens,
        metrics.completion_tokens,
        metrics.api_requests,
        metrics.failed_requests,
    )


def team_day(about: tuple[str | None, ...], *measured: Any) -> TeamDay:
    """Return a row: about team, model group, model and key; spend, tokens, requests."""
    names = [_name(text) for text in about]
    team, group, model, key = [*names, "", "", ""][:4]
    spend, prompt, completion, requests, failures = measured
    return TeamDay(
        key=natural_key(*(text or "" for text in about)),
        team_id="" if team == "Unassigned" else team,
        model_group=group,
        model=model,
        key_hash=key[:128],
        prompt_tokens=int(prompt),
        completion_tokens=int(completion),
        requests=int(requests),
        failures=int(failures),
        spend=numbers.cost(Decimal(spend)),
    )
