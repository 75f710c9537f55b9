"""The nightly join on real sockets: whatever happens to it, run again it gives the same bill."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest
import time_machine
from django.db import connection

from finops.ingest.configuring import save_source
from finops.join import join
from finops.mapping_services import set_mapping
from finops.models import Bill, BillLine, CostRow, Coverage, Finding, TokenRow
from finops.specs import MappingSpec, SourceSpec
from tests.finops import rows
from tests.finops.sources.doubles import LiteLLMDouble

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 6, 8, 12, tzinfo=UTC)
EARLIER = timedelta(hours=2)
WRITES = ("INSERT", "UPDATE", "DELETE")


class Killed(BaseException):
    """The process is no more: nothing catches it."""


class Fate:
    """Kills the process at its ``at``-th write; a dead one writes nothing more."""

    def __init__(self, at=None):
        self.at = at
        self.written = 0

    def __call__(self, execute, sql, params, many, context):
        if sql.lstrip().startswith(WRITES):
            self.written += 1
            if self.at is not None and self.written >= self.at:
                raise Killed
        return execute(sql, params, many, context)


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as travelling:
        yield travelling


@pytest.fixture
def gateway(httpserver, here, samples, settings):
    settings.SOURCE_SECRETS |= {"SOURCE_GATEWAY_TOKEN": "s3cret"}
    text = (samples / "litellm" / "spend_logs.jsonl").read_text()
    double = LiteLLMDouble(logs=[json.loads(line) for line in text.splitlines()])
    for path in ("/llm/spend/logs/v2", "/llm/team/daily/activity"):
        httpserver.expect_request(path).respond_with_handler(double.answer)
    return double


@pytest.fixture
def platform(clock, oc, week, gateway, here):
    """A month with metering, both sources, and mappings of what the samples name."""
    rows.june()
    url = here.replace("/model", "/llm")
    first = date(2026, 6, 1)
    save_source(SourceSpec("gateway", "litellm_api", url=url, first_day=first), actor=None)
    for spec in (
        MappingSpec("namespace", "ns-ia", "ia"),
        MappingSpec("litellm_team", "equipo-ia", "ia"),
        MappingSpec("deployment", "llama-3-8b-onprem", namespace="out"),
        MappingSpec("mode", "out", mode="external"),
    ):
        set_mapping(spec, None)
    return oc


def everything():
    """All that a bill is and rests on, without numbers that rows have by chance."""
    lines = BillLine.objects.values_list(
        *("bill__team__name", "number", "origin", "kind", "bucket", "namespace", "flavor"),
        *("lender", "model_group", "quantity", "unit_price", "amount"),
    )
    return {
        "lines": list(lines.order_by("bill__team__name", "number")),
        "bills": list(Bill.objects.values_list("total", "by_day", "by_queue").order_by("total")),
        "findings": list(Finding.objects.values_list("code", "severity", "subject", "numbers")),
        "days": list(Coverage.objects.values_list("source__name", "day", "stored", "ratio")),
        "iron": list(CostRow.objects.values_list("day", "key", "gpu_cost").order_by("key", "day")),
        "tokens": list(TokenRow.objects.values_list("day", "key", "spend").order_by("key")),
    }


def undisturbed():
    """Return how it ends, and how many writes that takes, as if it had never been."""
    point = connection.savepoint()
    fate = Fate()
    with connection.execute_wrapper(fate):
        join()
    found = everything()
    connection.savepoint_rollback(point)
    return found, fate.written


def test_a_night_loads_what_is_due_and_bills_it(platform):
    done = join()
    assert done.days == {"applied": 12, "failed": 2}  # days 3 and 6 of the sample hold nothing
    assert done.months == ("2026-06",)
    stored = Coverage.objects.filter(source=platform).exclude(stored="loaded")
    # Of days 3 and 6 nothing came, and of the others nothing is a zero.
    assert {3, 6} <= {row.day.day for row in stored if row.stored == "missing"}
    assert Finding.objects.filter(code="missing_coverage", subject="source=iron").exists()
    assert BillLine.objects.filter(kind="tokens_external").exists()
    again = join()
    assert again.days == {}
    assert again.months == ()


@pytest.mark.parametrize("part", [0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 1])
def test_killed_at_any_write_and_run_again_it_gives_the_same_bill(platform, clock, part):
    expected, writes = undisturbed()
    check_killed_at(1 + round(part * (writes - 1)), expected, clock)


@pytest.mark.long
def test_killed_at_every_write_in_turn_and_run_again_it_gives_the_same_bill(platform, clock):
    expected, writes = undisturbed()
    for at in range(1, writes + 1):
        point = connection.savepoint()
        check_killed_at(at, expected, clock)
        connection.savepoint_rollback(point)


def check_killed_at(at, expected, clock):
    clock.move_to(NOON - EARLIER)
    with connection.execute_wrapper(Fate(at)), pytest.raises(Killed):
        join()
    clock.move_to(NOON)  # a lease of the dead has run out
    join()
    found = everything()
    for name, wanted in expected.items():
        assert (name, found[name]) == (name, wanted)


@pytest.mark.parametrize(
    "fault",
    [
        (500, b'{"code":500,"status":"","data":null,"message":"query timed out"}'),
        (504, b"<html>gateway time-out</html>"),
        (200, b'{"code":200,"status":"success","data":[{"ns-ia":{"gpuCost":1'),
        (200, b'{"code":200,"data":[{"ns-ia":{"name":"ns-ia","gpuCost":NaN}}]}'),
    ],
    ids=["5xx", "html", "truncated", "NaN"],
)
def test_a_night_of_faults_is_made_good_by_the_next(platform, week, gateway, clock, fault):
    expected, _writes = undisturbed()
    clock.move_to(NOON - EARLIER)
    week.fault_at = dict.fromkeys(("allocation", "assets"), fault)
    gateway.faults = [fault] * 400
    assert set(join().days) <= {"failed"}
    assert not CostRow.objects.exists()
    assert not TokenRow.objects.exists()
    week.fault_at, gateway.faults = {}, []
    clock.move_to(NOON)
    join()
    found = everything()
    for name in ("bills", "lines", "days", "iron", "tokens"):
        assert (name, found[name]) == (name, expected[name])
