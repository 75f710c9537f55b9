"""LiteLLM's own tables, read only: named columns, bounded statements, one snapshot of time.

Its schema moves from version to version: columns are looked up, few are needed, and whatever
holds prompts or answers is never selected. The address with its password is a secret.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Self

import psycopg
import stamina
from psycopg import sql

from finops.sources.failures import SourceError, TransientError
from finops.sources.http import CONNECT_S, TRIES, request_text
from finops.sources.recording import Recording

ROWS = 5000
STATEMENT_S = 120
LOGS, SUMS = "LiteLLM_SpendLogs", "LiteLLM_DailyTeamSpend"
NEEDED = frozenset(
    ("request_id", "api_key", "spend", "prompt_tokens", "completion_tokens")
) | frozenset(("startTime", "model", "team_id"))
# What is read of a request: the name in the answer and the expression, by the column it needs.
PLAIN = (
    *("request_id", "startTime", "prompt_tokens", "completion_tokens", "api_key", "team_id"),
    *("model", "model_group", "model_id", "call_type", "cache_hit", "status", "request_tags"),
)
METADATA = """jsonb_build_object(
    'user_api_key_alias', metadata->>'user_api_key_alias',
    'user_api_key_team_alias', metadata->>'user_api_key_team_alias',
    'status', metadata->>'status',
    'is_silent_experiment', metadata->>'is_silent_experiment',
    'cost_breakdown', CASE WHEN jsonb_typeof(metadata->'cost_breakdown') = 'object' THEN
        jsonb_build_object('total_cost', metadata->'cost_breakdown'->'total_cost') END,
    'additional_usage_values',
        CASE WHEN jsonb_typeof(metadata->'additional_usage_values') = 'object' THEN
        jsonb_build_object('cache_read_input_tokens',
            metadata->'additional_usage_values'->'cache_read_input_tokens') END)"""
SESSION = (
    "-c default_transaction_read_only=on"
    f" -c statement_timeout={STATEMENT_S * 1000} -c lock_timeout=5000 -c timezone=UTC"
)


class Tables:
    """Answers the questions of ``LiteLLMTablesReader`` and records what it answered."""

    def __init__(
        self,
        dsn: str,
        recording: Recording | None = None,
        *,
        before: Callable[[], None] = lambda: None,
        rows: int = ROWS,
    ) -> None:
        self.recording = recording if recording is not None else Recording()
        self._before = before
        self._rows = rows
        self._connection = _connected(dsn, before)
        self._columns: dict[str, frozenset[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def get(self, path: str, **query: str | int) -> bytes:
        """Return an answer as JSON.

        Raises:
            SourceError: a table or a column that is needed is not there, or a time ran out.
        """
        answers: Mapping[str, Callable[..., Any]] = {
            "requests": self._requests,
            "sums": self._sums,
            "bounds": self._bounds,
        }
        self._before()
        try:
            found = answers[path](**query)
        except psycopg.errors.QueryCanceled as error:
            raise TransientError("SOURCE_TIMED_OUT", seconds=STATEMENT_S) from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise SourceError("SOURCE_REFUSED_US", status=_code(error)) from error
        except psycopg.OperationalError as error:
            raise TransientError("SOURCE_BROKE_OFF") from error
        except psycopg.Error as error:
            raise SourceError("SOURCE_FAILED", sqlstate=_code(error)) from error
        body = json.dumps(found, default=_plain, allow_nan=False).encode()
        self.recording.add(request_text(path, query), body)
        return body

    def _requests(
        self, start: str, end: str, after_at: str = "", after_id: str = ""
    ) -> list[dict[str, Any]]:
        there = self._there(LOGS)
        names = [name for name in PLAIN if name in there]
        chosen: list[sql.Composable] = [sql.Identifier(name) for name in names]
        chosen.append(sql.SQL("spend::numeric"))
        if "metadata" in there:
            chosen.append(sql.SQL(METADATA))
        key = sql.SQL('AND ("startTime", request_id) > (%(after_at)s, %(after_id)s)')
        query = sql.SQL(
            'SELECT {} FROM {} WHERE "startTime" >= %(start)s AND "startTime" < %(end)s {}'
            ' ORDER BY "startTime", request_id LIMIT %(rows)s'
        ).format(
            sql.SQL(", ").join(chosen),
            sql.Identifier(LOGS),
            key if after_id else sql.SQL(""),
        )
        bounds = {"start": _naive(start), "end": _naive(end), "rows": self._rows}
        if after_id:
            bounds |= {"after_at": _naive(after_at), "after_id": after_id}
        labels = [*names, "spend", "metadata"]
        return [
            dict(zip(labels, row, strict=False))
            for row in self._connection.execute(query, bounds).fetchall()
        ]

    def _sums(self, day: str) -> list[tuple[Any, ...]]:
        """Return its sums of a UTC day; its unique key lets several rows of one kind in."""
        if not self._looked_up(SUMS):
            raise SourceError("SOURCE_NO_TABLE", table=SUMS)
        query = sql.SQL(
            "SELECT coalesce(team_id, ''), coalesce(model_group, ''), coalesce(model, ''),"
            " api_key, sum(spend::numeric), sum(prompt_tokens), sum(completion_tokens),"
            " sum(api_requests), sum(failed_requests) FROM {} WHERE date = %s"
            " GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
        ).format(sql.Identifier(SUMS))
        return self._connection.execute(query, (day,)).fetchall()

    def _bounds(self) -> list[datetime | None]:
        """Return when the first and the last request that is still logged began."""
        self._there(LOGS)
        query = sql.SQL('SELECT min("startTime"), max("startTime") FROM {}')
        row = self._connection.execute(query.format(sql.Identifier(LOGS))).fetchone()
        return list(row or (None, None))

    def _there(self, table: str) -> frozenset[str]:
        """Return the columns of the log.

        Raises:
            SourceError: one without which nothing can be counted is missing.
        """
        found = self._looked_up(table)
        if not found:
            raise SourceError("SOURCE_NO_TABLE", table=table)
        if NEEDED - found:
            missing = ", ".join(sorted(NEEDED - found))
            raise SourceError("SOURCE_NO_COLUMNS", table=table, columns=missing)
        return found

    def _looked_up(self, table: str) -> frozenset[str]:
        if table not in self._columns:
            rows = self._connection.execute(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_name = %s AND table_schema = ANY (current_schemas(false))",
                (table,),
            )
            self._columns[table] = frozenset(name for (name,) in rows)
        return self._columns[table]


def _connected(dsn: str, before: Callable[[], None]) -> "psycopg.Connection[Any]":
    """Return a connection that can write nothing and sees one moment of time.

    No message of the driver is passed on: it may hold a part of the address.
    """
    for attempt in stamina.retry_context(on=TransientError, attempts=TRIES, timeout=None):
        with attempt:
            before()
            try:
                connection = psycopg.connect(
                    dsn,
                    connect_timeout=int(CONNECT_S),
                    options=SESSION,
                    application_name="gpuplatform-cost",
                )
            except psycopg.OperationalError as error:
                refused = "authentication" in str(error) or "role " in str(error)
                if refused:
                    raise SourceError("SOURCE_REFUSED_US", status="login") from None
                raise TransientError("SOURCE_UNREACHABLE", problem="PostgreSQL") from None
            except psycopg.Error:
                raise SourceError("SOURCE_BAD_SECRET") from None
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            return connection
    raise AssertionError  # the last attempt raises


def _naive(text: str) -> datetime:
    """Return an instant as its columns hold it: UTC, without saying so."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)


def _code(error: psycopg.Error) -> str:
    return error.sqlstate or type(error).__name__


def _plain(value: Any) -> str | int:
    """Return what JSON does not know: instants, and exact numbers as texts."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else f"{value:f}"
    raise TypeError(type(value).__name__)
