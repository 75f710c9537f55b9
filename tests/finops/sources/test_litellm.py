"""LiteLLM by its tables in a real PostgreSQL and by its API: the same rows, once each."""

import csv
import json
from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import psycopg
import pytest
import time_machine
from psycopg.types.json import Jsonb

from finops.ingest.configuring import save_source
from finops.ingest.loading import load_day
from finops.models import Coverage, Fetch, TeamDayRow, TokenRow
from finops.sources.decoding import decoded
from finops.sources.litellm import Activity, team_days
from finops.specs import SourceSpec
from tests import services
from tests.finops.sources.doubles import LiteLLMDouble

pytestmark = pytest.mark.django_db
DAYS = [date(2026, 6, number) for number in range(1, 11)] + [
    date(2026, 6, 15),
    date(2026, 6, 30),
]
FIRST, SECOND = DAYS[0], DAYS[1]
PROMPT = "the secret plan of the board"


@pytest.fixture(autouse=True)
def july():
    with time_machine.travel(datetime(2026, 7, 5, 12, tzinfo=UTC), tick=False) as clock:
        yield clock


@pytest.fixture(scope="session")
def logs(samples):
    """The rows of the sample, with prompts as a real log may have them."""
    text = (samples / "litellm" / "spend_logs.jsonl").read_text()
    return [json.loads(line) | {"messages": {"content": PROMPT}} for line in text.splitlines()]


@pytest.fixture(scope="session")
def tables(postgresql_url, samples, logs):
    """A PostgreSQL with LiteLLM's tables, the requests and sums of the samples, and a reader."""
    with services.database(postgresql_url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute((samples / "litellm" / "schema_double.sql").read_text())
            for log in logs:
                insert(connection, "LiteLLM_SpendLogs", log)
            with (samples / "litellm" / "daily_team_spend.csv").open() as file:
                for row in csv.DictReader(file):
                    row["updated_at"] = datetime(2026, 7, 1, tzinfo=UTC)
                    row["mcp_namespaced_tool_name"] = row["mcp_namespaced_tool_name"] or None
                    insert(connection, "LiteLLM_DailyTeamSpend", row)
        yield url


def insert(connection, table, row):
    there = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s", (table,)
    )
    known = {name for (name,) in there}
    given = {
        name: Jsonb(value) if isinstance(value, dict | list) else value
        for name, value in row.items()
        if name in known
    }
    names = ", ".join(f'"{name}"' for name in given)
    marks = ", ".join(["%s"] * len(given))
    connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', list(given.values()))


@pytest.fixture
def by_tables(tables, settings):
    settings.SOURCE_SECRETS = {"SOURCE_GATE_DSN": tables}
    return gateway("litellm_database")


def gateway(kind, url="", zone="UTC"):
    first = date(2026, 6, 1)
    source = save_source(SourceSpec("gate", kind, url=url, first_day=first), actor=None)
    source.time_zone = zone
    source.save()
    return source


@pytest.fixture
def litellm(httpserver, logs, samples):
    double = LiteLLMDouble(logs=list(logs))
    for number in (1, 2):
        path = samples / "litellm" / f"team_daily_activity_page{number}.json"
        page = json.loads(path.read_text())
        double.days += page["results"]
    for path in ("spend/logs/v2", "team/daily/activity"):
        httpserver.expect_request(f"/model/{path}").respond_with_handler(double.answer)
    return double


@pytest.fixture
def by_api(litellm, here, settings):
    settings.SOURCE_SECRETS = {"SOURCE_GATE_TOKEN": "sk-master"}
    return gateway("litellm_api", here)


@pytest.fixture(params=["litellm_database", "litellm_api"])
def source(request):
    """The same gateway by either way."""
    name = {"litellm_database": "by_tables", "litellm_api": "by_api"}[request.param]
    return request.getfixturevalue(name)


def load_june(source):
    for day in DAYS:
        load_day(source, day)


def sums():
    found = defaultdict(lambda: (0, Decimal(0), 0))
    for row in TokenRow.objects.all():
        tokens, spend, rows = found[row.team_id]
        tokens += row.prompt_tokens + row.completion_tokens
        found[row.team_id] = (tokens, spend + row.spend, rows + 1)
    return dict(found)


def state(source, day):
    found = Coverage.objects.get(source=source, day=day)
    return found.state, found.last.code


# ---- the samples' numbers -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("zone", "datos"),
    [
        ("UTC", (677_900, Decimal("0.51558"), 7)),
        ("Europe/Madrid", (670_900, Decimal("0.51012"), 7)),
    ],
)
def test_june_by_team_in_either_zone_by_either_way(source, zone, datos):
    source.time_zone = zone
    source.save()
    load_june(source)
    assert sums() == {
        "equipo-datos": datos,
        "equipo-ia": (377_200, Decimal("0.1346"), 5),
        "equipo-plataforma": (901_500, Decimal("0.315"), 2),
        "equipo-antiguo": (70_000, Decimal("0.0245"), 1),
        "": (35_015, Decimal("0.01225525"), 2),
    }
    rows = TokenRow.objects.all()
    start = datetime(2026, 6, 1, tzinfo=ZoneInfo(zone))
    assert all(row.at >= start for row in rows)
    assert "chatcmpl-d009" not in {row.request_id for row in rows}  # 1 July, at its first instant


def test_what_each_odd_row_is(source):
    load_june(source)
    rows = {row.request_id.removeprefix("chatcmpl-")[:4]: row for row in TokenRow.objects.all()}
    hit, failed, streamed = rows["d003"], rows["d004"], rows["d005"]
    assert (hit.cache_hit, hit.failed, hit.prompt_tokens + hit.completion_tokens) == (
        True,
        False,
        2000,
    )
    assert (failed.failed, failed.prompt_tokens, failed.spend) == (True, 2900, 0)
    assert (streamed.spend, streamed.breakdown_cost) == (0, Decimal("0.00936"))
    assert (rows["i004"].failed, rows["i004"].spend) == (True, 0)
    assert rows["d006"].tags == ["cc:1001", "cc:1002"]
    assert rows["d006"].key_hash != rows["d005"].key_hash  # rotated; the team is the row's
    assert {rows["d006"].team_id, rows["d005"].team_id} == {"equipo-datos"}
    assert (rows["i003"].team_id, rows["i003"].model_group) == ("equipo-ia", "llama-3-70b-onprem")
    assert (rows["n001"].team_id, rows["n002"].team_id) == ("", "")
    assert [rows["n002"].is_internal, rows["n001"].is_internal] == [True, False]
    assert rows["p002"].breakdown_cost in (None, 0)
    assert rows["x001"].team_id == "equipo-antiguo"
    assert rows["x002"].tags == ['=HYPERLINK("http://x","y")']
    assert (rows["d002"].key_alias, rows["d002"].team_alias) == ("datos-prod", "equipo-datos")
    billable = sum(
        row.prompt_tokens + row.completion_tokens
        for row in rows.values()
        if row.team_id == "equipo-datos" and not (row.failed or row.cache_hit)
    )
    assert billable == 677_900 - 2_000 - 2_900


def test_prompts_are_neither_stored_nor_kept(source):
    load_june(source)
    from finops.sources.recording import unpacked  # noqa: PLC0415

    kept = b"".join(
        one.body
        for fetch in Fetch.objects.all()
        for one in unpacked(bytes(fetch.payload.body)).exchanges
    )
    assert b"chatcmpl-d002" in kept
    assert PROMPT.encode() not in kept
    assert b"messages" not in kept


def test_a_repeat_is_a_no_op(source):
    load_june(source)
    before = list(TokenRow.objects.order_by("key").values_list("key", "day", "spend"))
    load_june(source)
    assert {fetch.outcome for fetch in Fetch.objects.all()[: len(DAYS)]} == {"unchanged"}
    assert list(TokenRow.objects.order_by("key").values_list("key", "day", "spend")) == before


def test_its_own_sums_of_the_month_are_exact(by_tables):
    june = [date(2026, 6, number) for number in range(1, 31)]
    for day in june:
        load_day(by_tables, day)
    spend, tokens = defaultdict(Decimal), defaultdict(int)
    for row in TeamDayRow.objects.all():
        spend[row.team_id] += row.spend
        tokens[row.team_id] += row.prompt_tokens + row.completion_tokens
    assert {team: Decimal(f"{value:.5f}") for team, value in spend.items()} == {
        "equipo-datos": Decimal("296.40000"),
        "equipo-ia": Decimal("73.50000"),
        "equipo-plataforma": Decimal("28.00000"),
        "": Decimal("0.01225"),
        "equipo-antiguo": Decimal("0.02450"),
    }
    assert tokens["equipo-datos"] == 380_000_000
    assert (tokens["equipo-ia"], tokens["equipo-plataforma"]) == (210_000_000, 80_000_000)


def test_t8_sums_are_those_of_all_pages(samples):
    pages = [
        decoded((samples / "litellm" / f"team_daily_activity_page{n}.json").read_bytes(), Activity)
        for n in (1, 2)
    ]
    days = ("2026-06-05", "2026-06-06", "2026-06-07", "2026-06-08")
    found = [team_days(pages, day) for day in days]
    assert [row.requests for row in found[3] if row.team_id == "equipo-datos"] == [6229]
    total = sum(row.spend for rows in found for row in rows)
    assert total == Decimal("21.23633908") + Decimal("21.19958908")
    apart = [team_days([page], "2026-06-08") for page in pages]
    assert (len(apart[0]) > 0, apart[1]) == (True, ())


def test_t7_days_of_a_zone_add_up_to_their_range(by_api, litellm, logs):
    litellm.logs = [
        logs[0] | {"request_id": f"t7-{at}", "startTime": at, "spend": spend}
        for at, spend in (
            ("2026-05-01T00:00:00Z", 0),
            ("2026-06-11T01:00:00Z", 1.0),
            ("2026-06-11T23:00:00Z", 2.0),
            ("2026-06-12T03:00:00Z", 4.0),
        )
    ]
    by_api.time_zone = "Asia/Kolkata"
    by_api.save()
    for number in (11, 12):
        load_day(by_api, date(2026, 6, number))
    found = defaultdict(Decimal)
    for row in TokenRow.objects.all():
        found[row.day.day] += row.spend
    assert found == {11: 1, 12: 6}


def test_t10_the_log_counts_all_keys_whatever_its_sums_dropped(by_api, litellm, logs):
    at = "2026-06-01T10:00:00Z"
    litellm.logs = [logs[0] | {"request_id": "old", "startTime": "2026-05-01T00:00:00Z"}]
    litellm.logs += [
        logs[0] | {"request_id": f"r{n}", "api_key": f"k{n}", "startTime": at, "spend": 1.0}
        for n in range(250)
    ]
    litellm.page_size = 100
    metrics = {"spend": 100.0, "prompt_tokens": 1, "completion_tokens": 1, "api_requests": 100}
    entities = {"equipo-datos": {"metrics": metrics | {"failed_requests": 0}}}
    litellm.days = [{"date": "2026-06-01", "breakdown": {"entities": entities}}]
    for _ in range(2):
        load_day(by_api, FIRST)
    assert sum(row.spend for row in TokenRow.objects.all()) == 250
    assert TeamDayRow.objects.get().spend == 100


# ---- what goes wrong ----------------------------------------------------------------------------
def test_rows_that_come_on_two_pages_count_once(by_api, litellm):
    litellm.page_size, litellm.overlap = 2, 1
    load_day(by_api, FIRST)
    assert TokenRow.objects.count() == 3
    assert state(by_api, FIRST) == ("loaded", "")


def test_pages_that_do_not_move_on_are_refused(by_api, litellm):
    litellm.stuck = True
    load_day(by_api, FIRST)
    assert state(by_api, FIRST) == ("missing", "SOURCE_REPEATS")


def test_a_day_without_requests_is_quiet_only_when_the_log_goes_on(source):
    quiet = date(2026, 6, 20)
    load_day(source, quiet)
    if source.kind == "litellm_database":  # its sums know of requests on that day
        assert state(source, quiet) == ("partial", "")
    else:
        assert state(source, quiet) == ("loaded", "")
    load_day(source, date(2026, 7, 3))  # after everything
    assert state(source, date(2026, 7, 3)) == ("missing", "SOURCE_NO_DATA")


def test_a_log_that_begins_within_the_day_may_be_cut_off(source, logs):
    first = date(2026, 5, 31)
    load_day(source, first)
    assert state(source, first) == ("partial", "")
    assert [code for code, _ in Fetch.objects.latest("id").notes] == ["SOURCE_LOG_BEGINS"]


def test_fewer_requests_than_before_wait_for_a_judgement(by_api, litellm):
    load_day(by_api, FIRST)
    litellm.logs = [log for log in litellm.logs if "d002" not in log["request_id"]]
    load_day(by_api, FIRST)
    assert state(by_api, FIRST) == ("quarantined", "SOURCE_SMALLER")
    assert TokenRow.objects.count() == 3


def test_without_its_secret_nothing_is_asked(by_tables, settings):
    settings.SOURCE_SECRETS = {}
    fetch = load_day(by_tables, FIRST)
    assert (fetch.code, fetch.numbers) == ("SOURCE_NO_SECRET", {"variable": "SOURCE_GATE_DSN"})


@pytest.mark.parametrize(
    ("dsn", "code"),
    [
        ("postgresql://reader:s3cret@127.0.0.1:9/litellm", "SOURCE_UNREACHABLE"),
        ("postgresql ://s3cret", "SOURCE_BAD_SECRET"),
    ],
)
def test_a_database_that_is_away_leaves_a_gap_and_no_secret(by_tables, settings, dsn, code):
    settings.SOURCE_SECRETS = {"SOURCE_GATE_DSN": dsn}
    fetch = load_day(by_tables, FIRST)
    assert state(by_tables, FIRST) == ("missing", code)
    assert "s3cret" not in f"{fetch.numbers} {fetch.sentence}"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ('ALTER TABLE "LiteLLM_SpendLogs" RENAME TO gone', "SOURCE_NO_TABLE"),
        ('ALTER TABLE "LiteLLM_SpendLogs" RENAME team_id TO squad', "SOURCE_NO_COLUMNS"),
    ],
)
def test_a_schema_without_what_is_needed_is_refused(
    postgresql_url, samples, settings, change, code
):
    with services.database(postgresql_url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute((samples / "litellm" / "schema_double.sql").read_text())
            connection.execute(change)
        settings.SOURCE_SECRETS = {"SOURCE_GATE_DSN": url}
        source = gateway("litellm_database")
        load_day(source, FIRST)
        assert state(source, FIRST) == ("missing", code)


def test_an_older_schema_with_the_needed_columns_only_is_read(postgresql_url, settings):
    with services.database(postgresql_url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                'CREATE TABLE "LiteLLM_SpendLogs" (request_id text, api_key text, spend float8,'
                ' prompt_tokens int, completion_tokens int, "startTime" timestamp(3), model text,'
                " team_id text)"
            )
            connection.execute(
                "INSERT INTO \"LiteLLM_SpendLogs\" SELECT 'r' || n, 'k', 0.1, 1, 2,"
                " timestamp '2026-05-31 23:59:59.999' + n * interval '1 ms', 'm', NULL"
                " FROM generate_series(0, 12000) n"
            )
        settings.SOURCE_SECRETS = {"SOURCE_GATE_DSN": url}
        source = gateway("litellm_database")
        load_day(source, FIRST)
    assert state(source, FIRST) == ("loaded", "")
    assert TokenRow.objects.count() == 12_000  # the first began a millisecond too early
    assert sum(row.spend for row in TokenRow.objects.all()) == Decimal("1200.0")
    assert [code for code, _ in Fetch.objects.get().notes] == ["SOURCE_NO_SUMS"]


def test_the_reader_cannot_write(tables):
    from finops.sources.litellm_tables import Tables  # noqa: PLC0415

    with Tables(tables) as opened, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        opened._connection.execute(  # noqa: SLF001
            'DELETE FROM "LiteLLM_SpendLogs"'
        )
