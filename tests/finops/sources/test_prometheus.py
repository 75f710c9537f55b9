"""Prometheus over a real socket: hours from samples, gaps that stay gaps, questions put right."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from werkzeug import Response

from finops.ingest.configuring import save_source
from finops.ingest.loading import load_day
from finops.ingest.testing import test_source as ask_source
from finops.models import Coverage, GpuUseRow, NodePriceRow
from finops.sources.failures import SourceError
from finops.sources.prometheus import month_to_date_query, team_cost_query, unused_query
from finops.specs import SourceSpec
from gpuplatform.common.problems import Rejected
from scheduling.models import CapacityInterval
from tests.finops.rows import FLAVOR, GPU, flavor, price

pytestmark = pytest.mark.django_db
DAY = date(2026, 6, 1)
MIDNIGHT = datetime(2026, 6, 1, tzinfo=UTC)
STEP = 300
NODE = "h100-node-01"


@pytest.fixture(autouse=True)
def second_of_june():
    with time_machine.travel(datetime(2026, 6, 2, 12, tzinfo=UTC), tick=False):
        yield


class PrometheusDouble:
    """Answers from series: ``samples(gpu, instant)`` is a text or None."""

    def __init__(self):
        self.asked = []
        self.gpus = 4
        self.samples = lambda _gpu, _at: "25"
        self.price = "1.4"
        self.warnings = []
        self.fault = None

    def answer(self, request):
        self.asked.append(request)
        if self.fault:
            return Response(*self.fault)
        query = request.args["query"]
        if request.path.endswith("query"):
            found = [{"metric": {"label_equipo": "datos"}, "value": [1, "2.8"]}]
            return self.answered("vector", found)
        start, end, step = (int(request.args[name]) for name in ("start", "end", "step"))
        instants = range(start, end + 1, step)
        if "node_gpu_hourly_cost" in query:
            values = [[at, self.price] for at in instants]
            return self.answered("matrix", [{"metric": {"node": NODE}, "values": values}])
        return self.answered("matrix", [self.gpu(number, instants) for number in range(self.gpus)])

    def gpu(self, number, instants):
        metric = {"Hostname": NODE, "UUID": f"GPU-{number}", "exported_namespace": "ns-datos"}
        taken = [(at, self.samples(number, at)) for at in instants]
        return {"metric": metric, "values": [[at, text] for at, text in taken if text]}

    def answered(self, kind, result):
        body = {"status": "success", "data": {"resultType": kind, "result": result}}
        return Response(json.dumps(body | {"warnings": self.warnings}))


@pytest.fixture
def prometheus(httpserver):
    double = PrometheusDouble()
    for path in ("query", "query_range"):
        address = f"/model/api/v1/{path}"
        httpserver.expect_request(address).respond_with_handler(double.answer)
    return double


@pytest.fixture
def source(here):
    return save_source(SourceSpec("prom", "prometheus", url=here, first_day=DAY), actor=None)


def state():
    found = Coverage.objects.get()
    return found.state, found.last.code, [code for code, _numbers in found.last.notes]


def node_in_inventory():
    flavor()
    CapacityInterval.objects.create(
        node=NODE, flavor=FLAVOR, resource=GPU, amount=4, started_at=MIDNIGHT - timedelta(days=9)
    )


def test_hours_are_samples_times_the_step(source, prometheus):
    node_in_inventory()
    load_day(source, DAY)
    assert state() == ("loaded", "", [])
    rows = GpuUseRow.objects.all()
    assert [(row.node, row.namespace, row.sampled_gpu_hours) for row in rows] == [
        (NODE, "ns-datos", Decimal(24))
    ] * 4
    assert {row.busy_gpu_hours for row in rows} == {Decimal(6)}
    first = prometheus.asked[0].args
    edge = 900  # of idle time that begins or ends beyond midnight
    assert int(first["start"]) == int(MIDNIGHT.timestamp()) - edge + STEP
    assert int(first["end"]) == int(MIDNIGHT.timestamp()) + 86_400 + edge
    assert NodePriceRow.objects.get().gpu_hour == Decimal("1.4")


def test_a_gap_is_not_idle_time(source, prometheus):
    node_in_inventory()
    noon = MIDNIGHT.timestamp() + 43_200
    prometheus.samples = lambda _gpu, at: "50" if at <= noon else None
    load_day(source, DAY)
    assert state() == ("partial", "", ["SOURCE_PARTLY"])
    row = GpuUseRow.objects.first()
    assert (row.sampled_gpu_hours, row.busy_gpu_hours) == (12, 6)


IDLE = [
    # from noon on, so many samples of 5 minutes at so much use: how many minutes are idle
    (2, "0", 0),  # ten minutes are too short
    (3, "4.9", 15),
    (3, "5", 0),  # the threshold itself is use
    (12, "0", 60),
]


@pytest.mark.parametrize(("samples", "use", "minutes"), IDLE)
def test_a_gpu_is_idle_where_it_stays_under_the_threshold_for_a_quarter_of_an_hour(
    source, prometheus, samples, use, minutes
):
    noon = MIDNIGHT.timestamp() + 43_200
    low = range(int(noon), int(noon) + samples * STEP, STEP)
    prometheus.samples = lambda _gpu, at: use if at in low else "50"
    load_day(source, DAY)
    assert GpuUseRow.objects.first().idle_gpu_hours == Decimal(minutes) / 60


def test_idle_time_over_midnight_counts_on_both_days_and_a_gap_ends_it(source, prometheus):
    midnight = int(MIDNIGHT.timestamp())
    night = range(midnight - STEP, midnight + 2 * STEP + 1, STEP)  # 20 minutes, 10 of the day
    evening = {midnight + 72_000, midnight + 72_000 + STEP, midnight + 72_000 + 3 * STEP}
    gap = midnight + 72_000 + 2 * STEP
    low = {*night, *evening}
    prometheus.samples = lambda _gpu, at: None if at == gap else "1" if at in low else "50"
    load_day(source, DAY)
    row = GpuUseRow.objects.first()
    assert row.idle_gpu_hours == Decimal("0.166667")
    assert row.sampled_gpu_hours == Decimal("23.916667")


def test_threshold_and_shortest_idle_time_are_the_sources(here, prometheus):
    options = {"idle_below_percent": 30, "idle_after_s": 86_400}
    spec = SourceSpec("prom", "prometheus", url=here, first_day=DAY, options=options)
    load_day(save_source(spec, actor=None), DAY)
    assert GpuUseRow.objects.first().idle_gpu_hours == 24


@pytest.mark.parametrize("options", [{"idle_below_percent": 101}, {"idle_after_s": 0}])
def test_a_threshold_beyond_reason_is_refused(here, options):
    with pytest.raises(Rejected):
        save_source(SourceSpec("prom", "prometheus", url=here, options=options), actor=None)


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-Inf"])
def test_what_is_no_number_is_no_sample(source, prometheus, odd):
    prometheus.gpus = 1
    last = MIDNIGHT.timestamp() + 86_400
    prometheus.samples = lambda _gpu, at: odd if at == last else "100"
    load_day(source, DAY)
    row = GpuUseRow.objects.get()
    assert row.sampled_gpu_hours == row.busy_gpu_hours == Decimal("23.916667")
    assert state() == ("partial", "", ["SOURCE_HOLES"])


def test_a_warning_makes_the_day_a_part(source, prometheus):
    prometheus.warnings = ["one of two stores did not answer"]
    load_day(source, DAY)
    assert state()[0] == "partial"
    assert "SOURCE_WARNED" in state()[2]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ((b'{"status":"error","errorType":"bad_data","error":"x"}', 400), "SOURCE_ANSWERED"),
        ((b'{"status":"error","errorType":"timeout","error":"x"}', 503), "SOURCE_ANSWERED"),
        ((b'{"status":"error","errorType":"execution","error":"x"}', 200), "SOURCE_ANSWERED"),
        (
            (b'{"status":"success","data":{"resultType":"matrix","result":[]}}', 200),
            "SOURCE_NO_DATA",
        ),
        (
            (b'{"status":"success","data":{"resultType":"vector","result":[]}}', 200),
            "SOURCE_WRONG_SHAPE",
        ),
        ((b"<html>", 200), "SOURCE_BROKEN_ANSWER"),
    ],
)
def test_no_answer_leaves_a_gap(source, prometheus, fault, code):
    prometheus.fault = fault
    load_day(source, DAY)
    assert state()[:2] == ("missing", code)
    assert not GpuUseRow.objects.exists()


def test_fewer_samples_than_before_wait_for_a_judgement(source, prometheus):
    load_day(source, DAY)
    prometheus.gpus = 3
    load_day(source, DAY)
    assert state()[:2] == ("quarantined", "SOURCE_SMALLER")
    assert GpuUseRow.objects.count() == 4


def test_t1_a_node_price_that_nobody_declared_holds_the_day_back(source, prometheus):
    node_in_inventory()
    price("1.40", valid_from=MIDNIGHT - timedelta(days=9))
    prometheus.price = "0.00191781"
    load_day(source, DAY)
    found = Coverage.objects.get()
    assert (found.state, found.last.numbers["cause"]) == ("quarantined", "factor_730")


# ---- the three questions ------------------------------------------------------------------------
def test_the_questions_join_what_only_pods_know():
    assert team_cost_query("label_equipo") == (
        "sum by (label_equipo) (sum by (namespace, pod, node) (container_gpu_allocation)"
        " * on (node) group_left () max by (node) (node_gpu_hourly_cost)"
        " * on (namespace, pod) group_left (label_equipo)"
        " max by (namespace, pod, label_equipo) (kube_pod_labels))"
    )
    assert "avg_over_time(DCGM_FI_DEV_GPU_UTIL[15m]) / 100" in unused_query("Hostname")
    month = month_to_date_query("label_equipo", timedelta(days=2))
    assert month.endswith("[172800s:300s]) * 300 / 3600")


@pytest.mark.parametrize("name", ["a b", 'x"', "", "é", "1a"])
def test_what_is_no_label_never_stands_in_a_question(name):
    with pytest.raises(SourceError):
        team_cost_query(name)


def test_a_test_asks_them(source, prometheus):
    result = ask_source(source)
    assert result.code == ""
    assert list(result.answers) == ["cost_per_team", "unused_gpus", "unused_cost", "month_to_date"]
    assert result.answers["cost_per_team"] == {"datos": "2.8"}
    queries = [request.args["query"] for request in prometheus.asked[2:]]
    assert "[129600s:300s]" in queries[3]  # a day and a half of June
