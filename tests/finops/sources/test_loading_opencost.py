"""Days of OpenCost into tables, over a real socket, with everything that can go wrong."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from finops.ingest.loading import lease_name, load_day
from finops.ingest.quarantine import accept_reading, reject_reading
from finops.models import AssetRow, CostRow, Coverage, Fetch, Payload
from finops.sources.recording import unpacked
from gpuplatform.common import leases
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected
from scheduling.models import CapacityInterval
from tests.finops.rows import FLAVOR, GPU, flavor, price
from tests.finops.sources.doubles import NODE

pytestmark = pytest.mark.django_db
FIRST, SECOND, THIRD, FOURTH = (date(2026, 6, number) for number in (1, 2, 3, 4))
SIXTH, SEVENTH = date(2026, 6, 6), date(2026, 6, 7)
FULL = dict.fromkeys(("cpuCost", "ramCost", "pvCost", "networkCost"), 0)


@pytest.fixture(autouse=True)
def july():
    with time_machine.travel(datetime(2026, 7, 1, 12, tzinfo=UTC), tick=False) as clock:
        yield clock


@pytest.fixture
def node(db):
    """The node of the double in our own inventory, since before June."""
    flavor()
    CapacityInterval.objects.create(
        node=NODE,
        flavor=FLAVOR,
        resource=GPU,
        amount=4,
        started_at=datetime(2026, 5, 1, tzinfo=UTC),
    )


def rows_of(namespace="ns-a", gpu_hours=24, **more):
    row = FULL | {"gpuHours": gpu_hours, "gpuCost": gpu_hours * 1.4}
    return {namespace: row | {"properties": {"namespace": namespace}} | more}


def coverage(source, day):
    return Coverage.objects.get(source=source, day=day)


def state(source, day=FIRST):
    found = coverage(source, day)
    return found.state, found.last.outcome, found.last.code


def total(source, **filters):
    rows = CostRow.objects.filter(source=source, **filters).exclude(namespace="__idle__")
    return sum((row.gpu_cost for row in rows), Decimal(0))


def snapshot():
    return (
        list(CostRow.objects.order_by("day", "key").values_list("day", "key", "gpu_cost")),
        list(AssetRow.objects.order_by("day", "key").values_list("day", "key", "gpu_hours")),
    )


# ---- a week of the samples ----------------------------------------------------------------------
def test_a_week_is_loaded_and_its_gaps_are_gaps(oc, week, node):
    price("1.40", valid_from=datetime(2026, 5, 1, tzinfo=UTC))
    for number in range(1, 8):
        load_day(oc, date(2026, 6, number))
    states = [coverage(oc, date(2026, 6, number)).state for number in range(1, 8)]
    assert states == ["loaded", "loaded", "missing", "loaded", "loaded", "missing", "loaded"]
    assert sum(row.gpu_cost for row in CostRow.objects.all()) == Decimal("672.00")
    assert sum(row.gpu_hours for row in AssetRow.objects.all()) == 5 * 96
    assert not CostRow.objects.filter(day__in=(THIRD, SIXTH)).exists()
    assert coverage(oc, THIRD).last.code == "SOURCE_NO_DATA"
    assert coverage(oc, FIRST).ratio == 1


def test_opencost_is_asked_for_a_day_in_words_that_every_version_knows(oc, week):
    load_day(oc, FIRST)
    question = week.questions()[0]
    assert question["window"] == "2026-06-01T00:00:00Z,2026-06-02T00:00:00Z"
    assert question["aggregate"] == "cluster,node,namespace,controllerKind,controller"
    assert (question["includeIdle"], question["shareIdle"]) == ("true", "false")
    assert "accumulate" not in question
    assert "step" not in question
    assert week.asked[0].headers["Authorization"] == "Bearer s3cret-of-oc"


def test_what_was_answered_is_kept_with_its_hash(oc, week):
    fetch = load_day(oc, FIRST)
    kept = unpacked(bytes(fetch.payload.body))
    assert [one.request.split("?")[0] for one in kept.exchanges] == [
        "GET allocation",
        "GET assets",
        "GET allNodePricing",
    ]
    assert kept.fingerprint() == fetch.sha256 == fetch.payload.sha256
    assert "s3cret" not in repr(kept)


def test_a_repeat_changes_nothing(oc, week):
    load_day(oc, FIRST)
    before = snapshot()
    again = load_day(oc, FIRST)
    assert again.outcome == "unchanged"
    assert snapshot() == before
    assert Payload.objects.count() == 1


def test_a_day_that_is_not_over_is_refused(oc, opencost):
    with pytest.raises(Rejected) as caught:
        load_day(oc, date(2026, 7, 1))
    assert [p.code for p in caught.value.problems] == ["DAY_NOT_OVER"]
    assert opencost.asked == []


# ---- what goes wrong on the way -----------------------------------------------------------------
@pytest.mark.parametrize(
    "case",
    [
        ("400_invalid_window", 400, "SOURCE_ANSWERED", 1),
        ("500_prometheus", 500, "SOURCE_ANSWERED", 6),  # three whole, three of the first part
        ("504_gateway", 504, "SOURCE_ANSWERED", 6),
        ("200_data_null", 200, "SOURCE_NO_DATA", 1),
        ("200_empty_data", 200, "SOURCE_NO_DATA", 1),
        ("200_nan", 200, "SOURCE_BROKEN_ANSWER", 1),
        ("200_truncated", 200, "SOURCE_BROKEN_ANSWER", 1),
    ],
)
def test_what_is_no_answer_leaves_a_gap(oc, opencost, opencost_sample, case):
    sample, status, code, tries = case
    opencost.fault_at["allocation"] = (status, opencost_sample(sample))
    load_day(oc, FIRST)
    assert state(oc) == ("missing", "failed", code)
    assert len(opencost.questions()) == tries
    assert not CostRow.objects.exists()


def test_a_failure_leaves_what_was_loaded_before(oc, week, opencost_sample):
    load_day(oc, FIRST)
    before = snapshot()
    week.fault_at["allocation"] = (200, opencost_sample("200_truncated"))
    load_day(oc, FIRST)
    assert state(oc) == ("loaded", "failed", "SOURCE_BROKEN_ANSWER")
    assert snapshot() == before


@pytest.mark.parametrize("faults", [[(503, b"")], [(500, b"{}"), (504, b"<html>")]])
def test_a_passing_fault_is_survived(oc, week, faults):
    week.faults = list(faults)
    load_day(oc, FIRST)
    assert state(oc) == ("loaded", "applied", "")


def test_a_day_that_is_too_long_for_it_is_read_in_parts_of_six_hours(oc, week):
    week.most_hours = 6
    load_day(oc, FIRST)
    assert state(oc) == ("loaded", "applied", "")
    hours = [question["window"][11:13] for question in week.questions()]
    assert hours == ["00", "00", "00", "00", "06", "12", "18"]
    assert total(oc) == Decimal("117.6")
    assert sum(row.gpu_hours for row in AssetRow.objects.all()) == 96


def test_parts_with_nothing_make_the_day_a_part(oc, opencost):
    opencost.days[FIRST] = [rows_of()]
    opencost.most_hours = 6
    whole = opencost.answer
    empty = b'{"code":200,"data":[null]}'

    def answer(request):
        late = request.args.get("window", "")[11:13] == "18" and "allocation" in request.path
        opencost.faults = [(200, empty)] if late else []
        return whole(request)

    opencost.answer = answer
    load_day(oc, FIRST)
    assert state(oc) == ("partial", "applied", "")
    assert [note[0] for note in coverage(oc, FIRST).last.notes] == ["SOURCE_EMPTY_PARTS"]
    assert total(oc) == Decimal("25.2")


def test_nobody_there_is_asked_three_times_and_not_in_parts(oc, settings):
    settings.SOURCE_HOSTS = ["localhost:9"]
    oc.url = "http://localhost:9"
    oc.save()
    load_day(oc, FIRST)
    assert state(oc) == ("missing", "failed", "SOURCE_UNREACHABLE")


def test_costs_without_a_list_of_machines_are_a_part(oc, opencost):
    opencost.days[FIRST] = [rows_of()]
    opencost.fault_at["assets"] = (404, b"not found")
    load_day(oc, FIRST)
    assert state(oc) == ("partial", "applied", "")
    assert total(oc) == Decimal("33.6")


def test_less_capacity_than_the_inventory_has_is_a_part(oc, opencost, node):
    opencost.days[FIRST] = [rows_of(gpu_hours=10)]
    opencost.gpu_hours_of_day = 47.5
    load_day(oc, FIRST)
    found = coverage(oc, FIRST)
    assert (found.state, found.ratio) == ("partial", Decimal("0.494792"))
    assert found.last.notes == [
        ["SOURCE_PARTLY", {"seen": "47.5", "there": "96", "percent": "49.5"}]
    ]


def test_a_warning_and_a_cost_that_is_null_make_a_part(oc, opencost):
    opencost.days[FIRST] = [rows_of(gpuCost=None)]
    opencost.warning = "1 of 4 queries timed out"
    load_day(oc, FIRST)
    notes = [note[0] for note in coverage(oc, FIRST).last.notes]
    assert coverage(oc, FIRST).state == "partial"
    assert notes == ["SOURCE_WARNED", "SOURCE_UNKNOWN_NUMBERS"]


# ---- what must be judged ------------------------------------------------------------------------
def test_a_smaller_reading_waits_and_the_larger_one_stays(oc, opencost):
    opencost.days[FIRST] = [rows_of(gpu_hours=24) | rows_of("ns-b", 12)]
    load_day(oc, FIRST)
    opencost.days[FIRST] = [rows_of(gpu_hours=24)]
    fetch = load_day(oc, FIRST)
    assert state(oc) == ("quarantined", "quarantined", "SOURCE_SMALLER")
    assert fetch.numbers == {"measure": "gpu_hours", "found": "24", "stored": "36"}
    assert total(oc) == Decimal("50.4")
    assert load_day(oc, FIRST).outcome == "unchanged"  # not a second question to a person
    assert coverage(oc, FIRST).quarantined_id == fetch.pk


def test_a_smaller_reading_is_applied_when_a_person_accepts_it(oc, opencost, fin):
    opencost.days[FIRST] = [rows_of(gpu_hours=24)]
    load_day(oc, FIRST)
    opencost.days[FIRST] = [rows_of(gpu_hours=12)]
    load_day(oc, FIRST)
    opencost.fault_at["allocation"] = (500, b"")  # the kept answer is used, not a new one
    accept_reading(oc, FIRST, fin, "pods were counted twice")
    assert total(oc) == Decimal("16.8")
    assert coverage(oc, FIRST).state == "loaded"
    entry = AuditEntry.objects.get(action="source_day.accepted")
    assert (entry.actor, entry.reason) == (fin, "pods were counted twice")
    assert entry.after["measures"]["gpu_hours"] == "12.000000"


def test_a_rejected_reading_is_not_brought_up_again(oc, opencost, fin):
    opencost.days[FIRST] = [rows_of(gpu_hours=24)]
    load_day(oc, FIRST)
    opencost.days[FIRST] = [rows_of(gpu_hours=12)]
    load_day(oc, FIRST)
    reject_reading(oc, FIRST, fin, "retention of its Prometheus")
    assert (coverage(oc, FIRST).state, total(oc)) == ("loaded", Decimal("33.6"))
    assert load_day(oc, FIRST).outcome == "rejected"
    assert coverage(oc, FIRST).state == "loaded"
    with pytest.raises(Rejected):
        reject_reading(oc, FIRST, fin, "again")


def test_a_whole_reading_takes_the_place_of_one_that_waits(oc, opencost):
    opencost.days[FIRST] = [rows_of(gpu_hours=24)]
    load_day(oc, FIRST)
    opencost.days[FIRST] = [rows_of(gpu_hours=12)]
    waiting = load_day(oc, FIRST)
    opencost.days[FIRST] = [rows_of(gpu_hours=30)]
    load_day(oc, FIRST)
    waiting.refresh_from_db()
    assert (waiting.outcome, coverage(oc, FIRST).state) == ("superseded", "loaded")
    assert total(oc) == Decimal(42)


def test_a_source_that_takes_its_smaller_answer_back_needs_no_judgement(oc, opencost):
    opencost.days[FIRST] = [rows_of(gpu_hours=24)]
    load_day(oc, FIRST)
    opencost.days[FIRST] = [rows_of(gpu_hours=12)]
    load_day(oc, FIRST)
    opencost.days[FIRST] = [rows_of(gpu_hours=24)]
    load_day(oc, FIRST)
    assert state(oc) == ("loaded", "unchanged", "")


def test_a_part_never_takes_the_place_of_a_whole_day(oc, opencost):
    opencost.days[FIRST] = [rows_of(gpu_hours=24)]
    load_day(oc, FIRST)
    opencost.days[FIRST] = [rows_of(gpu_hours=24) | rows_of("ns-b", 2)]
    opencost.warning = "partial"
    load_day(oc, FIRST)
    assert state(oc) == ("quarantined", "quarantined", "SOURCE_LESS_COMPLETE")


@pytest.mark.parametrize(
    ("resolved", "cause"),
    [(0.00191781, "factor_730"), (1022.0, "factor_730_high"), (0.0, "zero_price")],
)
def test_t1_prices_that_nobody_declared_hold_the_day_back(oc, opencost, node, resolved, cause):
    price("1.40", valid_from=datetime(2026, 5, 1, tzinfo=UTC))
    opencost.days[FIRST] = [rows_of()]
    opencost.gpu_price = resolved
    fetch = load_day(oc, FIRST)
    assert state(oc) == ("quarantined", "quarantined", "SOURCE_PRICE_ANOMALY")
    assert (fetch.numbers["cause"], fetch.numbers["node"]) == (cause, NODE)
    assert fetch.numbers["declared"] == "1.40"
    assert not CostRow.objects.exists()
    assert "1.40" in fetch.sentence


def test_t1_the_declared_price_is_let_through(oc, opencost, node):
    price("1.40", valid_from=datetime(2026, 5, 1, tzinfo=UTC))
    opencost.days[FIRST] = [rows_of(gpu_hours=96)]
    load_day(oc, FIRST)
    assert state(oc) == ("loaded", "applied", "")


def test_a_price_that_changes_within_the_day_is_no_anomaly(oc, opencost, node):
    noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
    price("1.00", valid_from=noon - timedelta(days=30), valid_to=noon)
    price("2.00", valid_from=noon)
    opencost.days[FIRST] = [rows_of()]
    opencost.gpu_price = 1.5
    load_day(oc, FIRST)
    assert state(oc) == ("loaded", "applied", "")


# ---- days of another zone -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "case",
    [
        (date(2026, 6, 1), "2026-05-31T22:00:00Z,2026-06-01T22:00:00Z", 24),
        (date(2026, 3, 29), "2026-03-28T23:00:00Z,2026-03-29T22:00:00Z", 23),
        (date(2026, 10, 25), "2026-10-24T22:00:00Z,2026-10-25T23:00:00Z", 25),
    ],
)
def test_a_local_day_is_asked_for_in_instants(oc, opencost, july, case):
    day, window, hours = case
    july.move_to(datetime(2026, 11, 1, tzinfo=UTC))
    oc.time_zone = "Europe/Madrid"
    oc.save()
    load_day(oc, day)
    assert opencost.questions()[0]["window"] == window
    found = coverage(oc, day)
    assert (found.ends_at - found.starts_at) == timedelta(hours=hours)


def test_an_attempt_that_dies_halfway_leaves_nothing_behind(oc, week, monkeypatch):
    def die(*_args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("finops.ingest.loading.replace_day", die)
        with pytest.raises(KeyboardInterrupt):
            load_day(oc, FIRST)
    assert not Fetch.objects.exists()
    assert not CostRow.objects.exists()
    load_day(oc, FIRST)
    assert state(oc) == ("loaded", "applied", "")


def test_one_process_reads_a_source_at_a_time(oc, week):
    other = leases.acquire(lease_name(oc), "another process", 60)
    with pytest.raises(Rejected) as caught:
        load_day(oc, FIRST)
    assert [problem.code for problem in caught.value.problems] == ["SOURCE_BUSY"]
    assert week.asked == []
    leases.release(other)
    load_day(oc, FIRST)
    assert leases.acquire(lease_name(oc), "another process", 60) is not None  # given back
