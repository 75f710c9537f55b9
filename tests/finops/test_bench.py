"""The bench of bills bills what it says, and its rows are its facts."""

import asyncio

import pytest
from django.http import StreamingHttpResponse

from finops import bench, billing
from finops.allocation.bill import chargeback
from finops.models import TokenRow
from gpuplatform.common.pages import ROWS_AT_ONCE, csv_rows


@pytest.mark.django_db
def test_the_rows_of_the_month_are_its_facts():
    work = bench.Work(40)
    bench.write_rows(work)
    period = billing.rebuild_draft("2026-10", now=bench.AFTER)
    assert period.total_cost == chargeback(bench.facts_of(work)).sources.capacity


@pytest.mark.django_db
def test_a_repeat_of_the_months_requests_changes_no_row():
    bench.write_rows(bench.Work(3))
    source = bench._gateway()  # noqa: SLF001
    bench._load(source, 93)  # noqa: SLF001
    before, keys = bench._fingerprint(), set(TokenRow.objects.values_list("key", "spend"))  # noqa: SLF001
    bench._load(source, 93)  # noqa: SLF001
    assert bench._fingerprint() == before  # noqa: SLF001
    assert set(TokenRow.objects.values_list("key", "spend")) == keys
    assert len(keys) == 93


def test_without_rows_a_bench_of_many_workloads_is_the_arithmetic_alone(monkeypatch):
    monkeypatch.setattr(bench, "LARGE", 10)
    report = bench.bench(20, 0, 0, 1)
    assert [goal.id for goal in report.goals] == ["s-compute"]


@pytest.mark.parametrize("count", [0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 3 * ROWS_AT_ONCE])
def test_a_long_file_is_sent_while_it_is_made_and_is_the_same(count):
    rows = [{"n": number} for number in range(count)]
    expected = "".join(f"{line}\r\n" for line in ("n", *range(count))).encode()
    sent = csv_rows("n", ("n",), iter(rows))
    assert isinstance(sent, StreamingHttpResponse) == (count > ROWS_AT_ONCE)
    assert b"".join(sent) == expected
    other = csv_rows("n", ("n",), iter(rows), is_async=True)

    async def collected():
        return b"".join([part async for part in other])

    if count > ROWS_AT_ONCE:
        assert asyncio.run(collected()) == expected
