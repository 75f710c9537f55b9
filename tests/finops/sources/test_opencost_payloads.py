"""Payloads of OpenCost to rows: every expected number of the samples' README, no socket."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from finops.sources.failures import SourceError
from finops.sources.opencost import Dimensions, cost_rows, sanitised
from finops.sources.opencost_assets import asset_rows, list_prices
from finops.sources.rows import iron_measures
from finops.sources.windows import Window

JUNE = Window(datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))
TENTH = Window(datetime(2026, 6, 10, tzinfo=UTC), datetime(2026, 6, 11, tzinfo=UTC))
BY_NAMESPACE = Dimensions(plain=("namespace",))
BY_LABEL = Dimensions(plain=(), labels=("equipo",))
BY_BOTH = Dimensions(plain=("namespace",), labels=("equipo",))


def costs(rows, column="gpu_cost", name=lambda row: row.namespace):
    return {name(row): Decimal(f"{getattr(row, column):.5f}") for row in rows}


def same(found, **expected):
    return {k: v for k, v in found.items() if v} == {k: Decimal(v) for k, v in expected.items()}


def test_the_month_by_namespace_comes_out_as_the_articles_have_it(opencost_sample):
    rows, notes = cost_rows(opencost_sample("01"), JUNE, BY_NAMESPACE)
    assert notes == ()
    expected = {
        "ns-datos": "1512",
        "ns-ia": "604.8",
        "ns-plataforma": "352.8",
        "__idle__": "1562.4",
    }
    assert same(costs(rows), **expected)
    assert same(costs(rows, "pv_cost"), __unmounted__="14.4")
    assert sum(row.gpu_cost for row in rows) == Decimal("4032.00")
    assert sum(row.total_cost for row in rows) == Decimal("4046.40")
    assert sum(row.gpu_hours for row in rows) == 1764
    assert [row.gpu_hours for row in rows if row.is_idle] == [0]
    assert iron_measures(rows)["cost"] == Decimal("4046.40") - Decimal("1562.40")


def test_the_month_by_label_keeps_pods_without_it_apart(opencost_sample):
    rows, notes = cost_rows(opencost_sample("02"), JUNE, BY_LABEL)
    assert notes == ()
    found = costs(rows, name=lambda row: row.labels.get("equipo", row.namespace))
    expected = {"datos": "1512", "ia": "576.8", "plataforma": "352.8"}
    assert same(found, **expected, __unallocated__="28", __idle__="1562.4")
    nobody = next(row for row in rows if not row.labels and not row.is_idle)
    assert (nobody.gpu_cost, nobody.pv_cost) == (Decimal(28), Decimal("14.4"))


def test_idle_shared_by_opencost_hides_in_gpu_cost_and_leaves_hours_alone(opencost_sample):
    rows, _ = cost_rows(opencost_sample("04"), JUNE, BY_NAMESPACE)
    expected = {"ns-datos": "2468.57143", "ns-ia": "987.42857", "ns-plataforma": "576"}
    assert same(costs(rows), **expected)
    hours = costs(rows, "gpu_hours")
    assert same(hours, **{"ns-datos": "1080", "ns-ia": "432", "ns-plataforma": "252"})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("05a", {"ns-a": "100.8", "ns-b": "33.6", "__idle__": "134.4"}),
        ("05b", {"ns-a": "201.6", "ns-b": "67.2"}),
        ("05c", {"ns-a": "134.4", "ns-b": "134.4"}),
    ],
)
def test_two_nodes(opencost_sample, name, expected):
    rows, _ = cost_rows(opencost_sample(name), TENTH, BY_NAMESPACE)
    assert same(costs(rows), **expected)
    assert {row.node for row in rows if not row.is_idle} == {"node-a", "node-b"}


def test_namespace_and_label_with_three_resources(opencost_sample):
    rows, notes = cost_rows(opencost_sample("06"), TENTH, BY_BOTH)
    assert notes == ()
    found = {(row.namespace, row.labels.get("equipo")): row for row in rows}
    three = {key: (row.cpu_cost, row.gpu_cost, row.ram_cost) for key, row in found.items()}
    assert three == {
        ("ns-datos", "datos"): (Decimal("7.68"), Decimal("67.2"), Decimal("6.144")),
        ("ns-ia", "ia"): (Decimal("3.84"), Decimal("33.6"), Decimal("12.288")),
        ("ns-ia", None): (Decimal("11.52"), 0, 0),
        ("__idle__", None): (Decimal("7.68"), Decimal("33.6"), Decimal("6.144")),
    }
    assert sum(row.total_cost for row in rows) == Decimal("189.696")


def test_each_day_of_the_week_is_what_it_is(opencost_sample):
    sets = json.loads(opencost_sample("03"))["data"]
    found, missing = {}, []
    for number, rows in enumerate(sets, 1):
        window = Window(
            datetime(2026, 6, number, tzinfo=UTC), datetime(2026, 6, number + 1, tzinfo=UTC)
        )
        body = json.dumps({"code": 200, "data": [rows]}).encode()
        try:
            found[number], _ = cost_rows(body, window, BY_NAMESPACE)
        except SourceError as error:
            missing.append((number, error.code))
    assert missing == [(3, "SOURCE_NO_DATA"), (6, "SOURCE_NO_DATA")]
    assert sum(row.total_cost for rows in found.values() for row in rows) == Decimal("672.00")
    fifth = {row.namespace: row.gpu_efficiency for row in found[5]}
    assert fifth["ns-plataforma"] is None
    assert fifth["ns-ia"] is not None
    fourth = {row.namespace: row for row in found[4]}
    assert "ns-plataforma" not in fourth
    assert (fourth["ns-ia"].first_at.hour, fourth["ns-ia"].last_at.hour) == (9, 19)
    assert next(r.gpu_cost for r in found[7] if r.is_idle) == Decimal("-6.72")
    assert iron_measures(found[7])["gpu_hours"] == Decimal("100.8")


def test_assets_are_the_capacity_with_the_price_that_it_resolved_to(opencost_sample):
    node, disk = sorted(
        asset_rows(opencost_sample("12"), JUNE), key=lambda one: one.kind != "Node"
    )
    assert (node.kind, node.name, node.gpu_hours) == ("Node", "h100-node-01", 2880)
    assert (node.gpu_cost, node.total_cost) == (Decimal(4032), Decimal(4032))
    assert node.gpu_cost / node.gpu_hours == Decimal("1.4")
    assert (disk.kind, disk.total_cost) == ("Disk", Decimal("14.4"))


@pytest.mark.parametrize(("name", "gpu"), [("10", "1.40"), ("11", "0.001918")])
def test_the_price_list_is_texts_by_the_hour(opencost_sample, name, gpu):
    found = {one.name: one.gpu_hour for one in list_prices(opencost_sample(name))}
    assert found == {"default": None, "default,gpu": Decimal(gpu), "default,spot": None}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("200_data_null", "SOURCE_NO_DATA"),
        ("200_empty_data", "SOURCE_NO_DATA"),
        ("200_nan", "SOURCE_BROKEN_ANSWER"),
        ("200_truncated", "SOURCE_BROKEN_ANSWER"),
        ("500_prometheus", "SOURCE_ANSWERED"),
    ],
)
def test_a_body_that_is_no_answer_is_never_a_zero(opencost_sample, name, code):
    with pytest.raises(SourceError) as caught:
        cost_rows(opencost_sample(name), JUNE, BY_NAMESPACE)
    assert caught.value.code == code


def body_of(*sets, **more):
    return json.dumps({"code": 200, "data": list(sets)} | more).encode()


@pytest.mark.parametrize("sets", [[], [None], [{}], [{}, None]])
def test_empty_sets_are_no_data(sets):
    with pytest.raises(SourceError, match="SOURCE_NO_DATA"):
        cost_rows(body_of(*sets), TENTH, BY_NAMESPACE)


def test_idle_alone_is_no_data_either():
    with pytest.raises(SourceError, match="SOURCE_NO_DATA"):
        cost_rows(body_of({"__idle__": {"gpuCost": 33.6}}), TENTH, BY_NAMESPACE)


def test_a_set_of_another_window_is_refused():
    span = {"start": "2026-06-09T22:00:00Z", "end": "2026-06-10T22:00:00Z"}
    with pytest.raises(SourceError, match="SOURCE_WRONG_WINDOW"):
        cost_rows(body_of({"ns": {"window": span, "gpuCost": 1}}), TENTH, BY_NAMESPACE)


def test_a_cost_that_is_null_counts_as_nothing_and_is_said():
    full = dict.fromkeys(("gpuHours", "cpuCost", "ramCost", "pvCost", "networkCost"), 1)
    rows, notes = cost_rows(body_of({"ns": full | {"gpuCost": None}}), TENTH, BY_NAMESPACE)
    assert rows[0].gpu_cost == 0
    assert [(note.code, dict(note.numbers)) for note in notes] == [
        ("SOURCE_UNKNOWN_NUMBERS", {"rows": 1, "fields": "gpu_cost"})
    ]


def test_what_later_versions_add_is_passed_over_and_what_they_warn_is_kept():
    row = dict.fromkeys(
        ("gpuHours", "gpuCost", "cpuCost", "ramCost", "pvCost", "networkCost"), 1
    ) | {"gpuAllocation": {"isGPUShared": False}, "natGatewayCost": 3, "totalCost": 5}
    rows, notes = cost_rows(body_of({"ns": row}, warning="partial data"), TENTH, BY_NAMESPACE)
    assert rows[0].total_cost == 5
    assert [note.code for note in notes] == ["SOURCE_WARNED"]


def test_a_negative_row_and_an_adjustment_stay_as_they_are():
    row = dict.fromkeys(("gpuHours", "cpuCost", "ramCost", "pvCost", "networkCost"), 0)
    row |= {"gpuCost": -6.72, "gpuCostAdjustment": 1.72, "totalCost": -5}
    rows, notes = cost_rows(body_of({"ns": row}), TENTH, BY_NAMESPACE)
    assert (rows[0].gpu_cost, notes) == (Decimal(-5), ())


def test_names_are_read_part_by_part_and_annotations_may_hold_a_slash():
    asked = Dimensions(
        ("cluster", "namespace", "controllerKind", "controller"), (), ("finops_io_equipo",)
    )
    row = {"gpuCost": 1, "properties": {"annotations": {"finops_io_equipo": "a/b"}}}
    row["properties"] |= {"cluster": "c1", "namespace": "ns", "controller": "api"}
    rows, _ = cost_rows(
        body_of({"c1/ns/deployment/deployment:api/x": {"gpuCost": 1}, "c1/ns/job/j/a/b": row}),
        TENTH,
        asked,
    )
    found = {(r.cluster, r.namespace, r.controller_kind, r.controller): r for r in rows}
    assert found["c1", "ns", "deployment", "api"].annotations == {"finops_io_equipo": "x"}
    assert found["c1", "ns", "", "api"].annotations == {"finops_io_equipo": "a/b"}


def test_keys_are_written_as_prometheus_writes_them():
    assert sanitised("finops.io/equipo") == "finops_io_equipo"
    assert sanitised("app.kubernetes.io/name") == "app_kubernetes_io_name"
