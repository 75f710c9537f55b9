"""What names and labels look like, and what a selector matches."""

import pytest

from queues.labels import is_dns_label, is_dns_subdomain, is_label_key, matches

LABELS = {"kubernetes.io/metadata.name": "ns-datos", "tier": "gold"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, False, id="no selector: nobody"),
        pytest.param({}, True, id="an empty one: everybody"),
        pytest.param({"matchLabels": {"tier": "gold"}}, True, id="equal"),
        pytest.param({"matchLabels": {"tier": "tin"}}, False, id="different"),
        pytest.param({"matchLabels": {"other": "gold"}}, False, id="absent"),
        pytest.param(
            {"matchLabels": {"kubernetes.io/metadata.name": "ns-datos"}}, True, id="name"
        ),
    ],
)
def test_match_labels(selector, expected):
    assert matches(selector, LABELS) is expected


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("tier", "In", ["gold", "tin"], True),
        ("tier", "In", ["tin"], False),
        ("other", "In", ["tin"], False),
        ("tier", "NotIn", ["gold"], False),
        ("tier", "NotIn", ["tin"], True),
        ("other", "NotIn", ["tin"], True),
        ("tier", "Exists", [], True),
        ("other", "Exists", [], False),
        ("tier", "DoesNotExist", [], False),
        ("other", "DoesNotExist", [], True),
    ],
)
def test_match_expressions(key, operator, values, expected):
    expression = {"key": key, "operator": operator, "values": values}
    assert matches({"matchExpressions": [expression]}, LABELS) is expected


def test_both_parts_must_hold():
    wanted = {"matchLabels": {"tier": "gold"}}
    assert not matches(
        {**wanted, "matchExpressions": [{"key": "x", "operator": "Exists"}]}, LABELS
    )


@pytest.mark.parametrize("name", ["a", "cq-datos", "a.b-c.d", "0"])
def test_names(name):
    assert is_dns_subdomain(name)


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a..b", "a\n", "é", "a" * 254])
def test_what_is_no_name(name):
    assert not is_dns_subdomain(name)
    assert not is_dns_label(name)


@pytest.mark.parametrize("key", ["cpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "A_b.c"])
def test_label_keys(key):
    assert is_label_key(key)


@pytest.mark.parametrize("key", ["", "/a", "a/", "A.com/b", "a/b/c", "a b", "x" * 64])
def test_what_is_no_label_key(key):
    assert not is_label_key(key)
