"""The checks of a month from rows: page, file, REST, and in the way of closing."""

import csv
import io
from datetime import date, timedelta
from decimal import Decimal

import pytest
import time_machine

from finops.billing import rebuild_draft
from finops.closing.steps import acknowledge
from finops.models import AssetRow, BillingPeriod, Mapping, Source, TeamDayRow, TokenRow
from finops.reconciling import Check
from finops.selectors.reconciliation import CheckRow, check_cells
from gpuplatform.common.problems import Rejected
from scheduling.models import UsageInterval
from tests.finops import rows
from tests.finops.closing.world import AFTER, JUNE, codes, june, step

pytestmark = pytest.mark.django_db
DAY = date(2026, 6, 9)


@pytest.fixture(autouse=True)
def in_july():
    with time_machine.travel(AFTER, tick=False):
        yield


def source(name, kind, plane):
    return Source.objects.create(
        name=name,
        kind=kind,
        plane=plane,
        currency="EUR",
        time_zone="UTC",
        first_day=date(2026, 6, 1),
        enabled=False,  # its rows are compared, not billed
    )


def gateway(requests=250, summed=100):
    """T10: 250 requests of 1.00; the daily table has lost those of 150 keys."""
    found = source("gateway", "litellm_database", "tokens")
    at = rows.JUNE + timedelta(days=8, hours=23)
    TokenRow.objects.bulk_create(
        TokenRow(
            source=found,
            day=DAY,
            key=f"k{n}",
            request_id=f"r{n}",
            at=at,
            team_id="team-datos",
            prompt_tokens=10,
            spend=Decimal("1.00"),
        )
        for n in range(requests)
    )
    TeamDayRow.objects.bulk_create(
        TeamDayRow(
            source=found,
            day=DAY,
            key=f"d{n}",
            team_id="team-datos",
            prompt_tokens=10,
            spend=Decimal("1.00"),
        )
        for n in range(summed)
    )


def checks(browser):
    text = browser.get(f"/drift/?month={JUNE}&format=csv").content.decode()
    return {(row["check"], row["subject"]): row for row in csv.DictReader(io.StringIO(text))}


def test_t10_lost_sums_stand_in_the_way_until_somebody_acknowledges_them(fin, ada, signed_in):
    june()
    gateway()
    found = checks(signed_in(fin))["R5", "gateway 2026-06-09 team-datos"]
    assert (Decimal(found["a"]), Decimal(found["b"])) == (250, 100)
    assert (Decimal(found["difference"]), found["status"]) == (150, "critical")
    step("put_forward", fin)
    step("reviewed", fin)
    with pytest.raises(Rejected) as refusal:
        step("closed", ada)
    assert codes(refusal) == ["sums_of_litellm"]
    subject = "gateway 2026-06-09 team-datos"
    acknowledge(JUNE, "sums_of_litellm", subject, fin, "known bug of the flush")
    assert step("closed", ada).status == "closed"


def test_equal_sums_are_no_row_and_in_nobodys_way(fin, ada, signed_in):
    june()
    gateway(5, 5)
    assert "R5" not in {check for check, _subject in checks(signed_in(fin))}
    step("put_forward", fin)
    step("reviewed", fin)
    assert step("closed", ada).status == "closed"


def test_inventory_lines_and_hours_are_compared(fin, signed_in):
    june()
    asset = source("costs", "opencost", "iron")
    AssetRow.objects.create(source=asset, day=DAY, key="n", name="n", gpu_hours=2000)
    found = checks(signed_in(fin))
    assert (found["R1", ""]["status"], Decimal(found["R1", ""]["difference"])) == ("warning", 880)
    assert (found["R4", ""]["status"], found["R4", ""]["a"]) == ("ok", "4032.00")
    assert Decimal(found["R3", ""]["a"]) == 1764


def test_page_file_and_answer_are_of_the_same_rows(fin, signed_in):
    june()
    gateway()
    browser = signed_in(fin)
    answer = browser.get(f"/api/v1/drift/{JUNE}/").json()
    assert {(row["check"], row["subject"]) for row in answer} == set(checks(browser))
    page = browser.get("/drift/").content.decode()
    for text in ("1 check is critical", "4,032.00", "+150.00", "the daily sums have lost"):
        assert text in page
    assert page.count('<tr><th scope="row">') == len(answer)


def test_only_readers_of_all_find_it(lea, signed_in):
    june()
    browser = signed_in(lea)
    assert browser.get("/drift/").status_code == 404
    assert browser.get(f"/api/v1/drift/{JUNE}/").status_code == 404


def test_a_month_without_bills_is_not_found(fin, signed_in):
    assert signed_in(fin).get("/drift/").status_code == 200
    assert signed_in(fin).get("/drift/?month=2026-01").status_code == 404
    assert signed_in(fin).get("/api/v1/drift/x/").status_code == 404


def test_the_page_says_what_differs_what_did_not_run_and_names_both_sides(fin, signed_in):
    june()
    asset = source("costs", "opencost", "iron")
    AssetRow.objects.create(source=asset, day=DAY, key="n", name="n", gpu_hours=2000)
    page = signed_in(fin).get(f"/drift/?month={JUNE}").content.decode()
    for text in (
        "1 check differs, and is not critical",
        "our inventory",
        "OpenCost&#x27;s assets",
        "the source saw less: days that it does not have",
        "(R5): not compared, no source has daily sums beside its requests",
        "(R6): not compared, no requests were read from LiteLLM",
        "(R7): no price differs",
    ):
        assert text in page


def test_a_running_month_is_compared_up_to_the_last_day_that_the_source_has(fin, signed_in):
    """Half of today is metered already and no source has it: that is no difference."""
    asset = source("costs", "opencost", "iron")
    june()
    for number in range(1, 10):
        at = date(2026, 6, number)
        AssetRow.objects.create(source=asset, day=at, key="n", name="n", gpu_hours=96)
    with time_machine.travel(rows.JUNE + timedelta(days=9, hours=12), tick=False):
        rebuild_draft(JUNE)
        found = checks(signed_in(fin))["R1", ""]
    assert (found["status"], Decimal(found["a"]), Decimal(found["b"])) == ("ok", 864, 864)


def test_load_and_cause_are_of_the_flavor_that_served_however_dear_others_are(fin, signed_in):
    """1,080 GPU-hours are 270 h of 4 GPUs: 2,000 tokens a second would be 1,944 million."""
    june()
    rows.price("2.80", subject="h200", valid_from=rows.JUNE)
    UsageInterval.objects.filter(team__name="datos").update(namespace="ns-datos")
    Mapping.objects.create(
        kind="deployment",
        value="llama",
        namespace="ns-datos",
        tokens_per_second=2000,
        gpus=4,
        valid_from=rows.JUNE,
    )
    half = {"model_group": "llama", "tokens": 972_000_000, "token_cost": "758.16"}
    memo = {"models": [half | {"iron_direct": "1512.00"}]}
    BillingPeriod.objects.filter(name=JUNE).update(memo=memo)
    found = checks(signed_in(fin))["R8", "model_group=llama"]
    assert (Decimal(found["load_percent"]), found["cause"]) == (50, "utilisation")


def test_files_have_at_most_six_decimals_and_leave_shorter_numbers_as_they_are():
    third = Decimal(1) / 3
    row = CheckRow(Check("R3", "", third, Decimal("1512.00"), "warning"))
    cells = check_cells(BillingPeriod(name=JUNE), row)
    told = [str(cells[name]) for name in ("a", "b", "difference")]
    assert told == ["0.333333", "1512.00", "-1511.666667"]
