"""Fields of a manifest are read with their paths; everything wrong is said in one go."""

from decimal import Decimal

import pytest

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import Fields
from gpuplatform.common.pointers import pointer


def reader(**body: object) -> tuple[Fields, list[Diagnostic]]:
    found: list[Diagnostic] = []
    return Fields(body, "Thing/a", found), found


def test_good_values_are_read_without_a_word() -> None:
    fields, found = reader(t="x", n=3, f=True, d="0.5", q="64Gi", l={"a": "b"}, s=["x"])

    assert fields.text("t") == "x"
    assert fields.integer("n") == 3
    assert fields.flag("f")
    assert fields.decimal("d") == Decimal("0.5")
    assert fields.quantity("q", "memory") == 64 * 2**30
    assert fields.labels("l") == {"a": "b"}
    assert fields.texts("s") == ["x"]
    fields.close()
    assert found == []


@pytest.mark.parametrize(
    ("method", "value", "code"),
    [
        ("text", 1, "BAD_TYPE"),
        ("integer", "1", "BAD_TYPE"),
        ("integer", True, "BAD_TYPE"),
        ("integer", -1, "NEGATIVE"),
        ("integer", 2**40, "OUT_OF_RANGE"),
        ("flag", "yes", "BAD_TYPE"),
        ("decimal", "NaN", "BAD_TYPE"),
        ("decimal", {}, "BAD_TYPE"),
        ("decimal", -0.5, "NEGATIVE"),
        ("labels", [], "BAD_TYPE"),
        ("labels", {"a": 1}, "BAD_TYPE"),
        ("texts", "x", "BAD_TYPE"),
        ("texts", [1], "BAD_TYPE"),
        ("child", "x", "BAD_TYPE"),
        ("children", {}, "BAD_TYPE"),
        ("children", [1], "BAD_TYPE"),
    ],
)
def test_wrong_values_are_reported(method: str, value: object, code: str) -> None:
    fields, found = reader(x=value)

    getattr(fields, method)("x")

    assert [diagnostic.code for diagnostic in found] == [code]
    assert found[0].path.startswith("x")
    assert "?" not in found[0].sentence


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("-1", "NEGATIVE"),
        (-4, "NEGATIVE"),
        ("four", "BAD_QUANTITY"),
        ("1e30", "BAD_QUANTITY"),
        (10**30, "BAD_QUANTITY"),
        (float("inf"), "BAD_QUANTITY"),
        (True, "BAD_QUANTITY"),
        (["1"], "BAD_QUANTITY"),
        (None, "BAD_QUANTITY"),
    ],
)
def test_absurd_amounts_are_reported(value: object, code: str) -> None:
    fields, found = reader(limits={"nvidia.com/gpu": value})

    assert fields.quantities("limits") == {}
    assert [(d.code, d.path) for d in found] == [(code, "limits[nvidia.com/gpu]")]


def test_paths_lead_through_lists_and_mappings() -> None:
    fields, found = reader(groups=[{"rows": [{"n": -1}, {"n": "x", "odd": 1}]}])

    for row in fields.children("groups")[0].children("rows"):
        row.integer("n")
        row.close()

    assert [(d.code, d.path) for d in found] == [
        ("NEGATIVE", "groups[0].rows[0].n"),
        ("BAD_TYPE", "groups[0].rows[1].n"),
        ("UNKNOWN_FIELD", "groups[0].rows[1].odd"),
    ]


def test_what_is_absent_and_needed_is_reported() -> None:
    fields, found = reader()

    fields.text("name", required=True)
    fields.children("rows", required=True)

    assert [(d.code, d.path) for d in found] == [("REQUIRED", "name"), ("REQUIRED", "rows")]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", ""),
        ("name", "/name"),
        ("pod_sets[0].requests[nvidia.com/gpu]", "/pod_sets/0/requests/nvidia.com~1gpu"),
        ("labels[a~b]", "/labels/a~0b"),
    ],
)
def test_paths_become_json_pointers(path: str, expected: str) -> None:
    assert pointer(path) == expected


def test_an_unknown_field_comes_with_the_nearest_that_would_be_read():
    found = []
    fields = Fields({"paralelism": 2, "colour": "red", "completions": 2}, "Job/x", found, "spec")
    fields.accept("parallelism", "completions", "completion")
    fields.close()
    assert [(d.path, d.numbers.get("nearest")) for d in found] == [
        ("spec.paralelism", "parallelism"),
        ("spec.colour", None),
    ]
    said = [d.as_json()["detail"] for d in found]
    assert "did you mean parallelism?" in said[0]
    assert "did you mean" not in said[1]
