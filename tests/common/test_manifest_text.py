"""Untrusted text becomes documents, or a refusal that names document, line and code."""

from typing import Any

import pytest

from gpuplatform.common.manifests import MAX_BYTES, load_documents
from gpuplatform.common.problems import Rejected

FRAME = "apiVersion: v1\nkind: Thing\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("NO", "NO"),
        ("on", "on"),
        ("0777", "0777"),
        ("1_000", "1_000"),
        ("2026-01-01", "2026-01-01"),
        ("12e3", 12_000.0),
        ("1.5", 1.5),
        ("-7", -7),
        ("true", True),
        ("'true'", "true"),
        ("~", None),
        ("'12'", "12"),
        (".nan", ".nan"),
        ("|\n  one\n  two\n", "one\ntwo\n"),
    ],
)
def test_plain_scalars_mean_what_they_mean_in_json(text: str, value: Any) -> None:
    (document,) = load_documents(f"{FRAME}x: {text}\n")

    assert document.body["x"] == value
    assert type(document.body["x"]) is type(value)


def test_documents_know_their_place_kind_and_namespace() -> None:
    text = f"{FRAME}---\n---\n# nothing\n---\nkind: Pod\nmetadata: {{name: p, namespace: ns}}\n"
    one, two = load_documents(text)

    assert (one.index, one.line, one.api_version, one.kind, one.name) == (0, 1, "v1", "Thing", "a")
    assert (two.index, two.line, two.namespace) == (1, 8, "ns")
    assert (one.subject, two.subject) == ("Thing/a", "Pod/ns/p")
    assert two.path == "documents[1]"


def test_json_is_read_and_a_list_counts_as_its_items() -> None:
    text = '{"kind": "List", "items": [{"kind": "A"}, {"kind": "B"}]}'

    assert [document.kind for document in load_documents(text)] == ["A", "B"]


BAD = [
    ("a: [", "BAD_SYNTAX", "documents[0]", 2),
    (FRAME + "---\na: b: c\n", "BAD_SYNTAX", "documents[1]", 5),
    ("a: 'x\n", "BAD_SYNTAX", "documents[0]", 2),
    (b"\xff\xfe\x00", "BAD_SYNTAX", "", 1),
    ("a: \x00", "BAD_SYNTAX", "documents[0]", 1),
    ('a: "\\0"', "BAD_TEXT", "documents[0]", 1),
    ('{"a": "\\ud800"}', "BAD_TEXT", "", 1),
    ("a: &x 1\nb: *x\n", "ANCHOR", "documents[0]", 1),
    ("a: !!python/object:os.system x", "TAG", "documents[0]", 1),
    ("a: 1\na: 2\n", "DUPLICATE_KEY", "documents[0]", 2),
    ('{"a": 1, "a": 2}', "DUPLICATE_KEY", "", 1),
    ("? [a]\n: b\n", "BAD_KEY", "documents[0]", 1),
    ("- 1\n", "NOT_A_MAPPING", "documents[0]", 1),
    ("just text", "NOT_A_MAPPING", "documents[0]", 1),
    ("a: " + "9" * 5_000, "BAD_NUMBER", "documents[0]", 1),
    ("a: 1e999", "BAD_NUMBER", "documents[0]", 1),
]


@pytest.mark.parametrize(("text", "code", "path", "line"), BAD, ids=range(len(BAD)))
def test_bad_text_is_refused_with_its_place(
    text: str | bytes, code: str, path: str, line: int
) -> None:
    with pytest.raises(Rejected) as refusal:
        load_documents(text)

    (problem,) = refusal.value.problems
    assert (problem.code, problem.path, problem.numbers["line"]) == (code, path, line)
    assert problem.message
    assert "?" not in problem.message


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", {"EMPTY_SUBMISSION"}),
        ("# only a comment\n", {"EMPTY_SUBMISSION"}),
        ("x" * (MAX_BYTES + 1), {"TOO_LARGE"}),
        ("a: 1\n---\n" * 101, {"TOO_MANY_DOCUMENTS"}),
        ("---\n" * 500, {"TOO_MANY_DOCUMENTS"}),
        ("[" * 100_000, {"BAD_SYNTAX", "TOO_DEEP"}),
        ('{"a":' * 100_000, {"TOO_DEEP"}),
        ("- " * 5_000, {"TOO_DEEP"}),
        ("? " * 5_000, {"BAD_KEY"}),
        ("a: " + "[1," * 50 + "]" * 50, {"TOO_DEEP"}),
    ],
    ids=range(10),
)
def test_bombs_are_refused_before_they_grow(text: str, codes: set[str]) -> None:
    with pytest.raises(Rejected) as refusal:
        load_documents(text)

    assert {problem.code for problem in refusal.value.problems} <= codes


@pytest.mark.parametrize(
    ("frame", "path"),
    [
        ("kind: 1", "documents[0].kind"),
        ("kind: A\nmetadata: x", "documents[0].metadata"),
        ("kind: A\nmetadata: {name: [a]}", "documents[0].metadata.name"),
    ],
)
def test_a_frame_of_wrong_types_is_refused_with_its_path(frame: str, path: str) -> None:
    with pytest.raises(Rejected) as refusal:
        load_documents(frame)

    assert [(p.code, p.path) for p in refusal.value.problems] == [("BAD_TYPE", path)]
