"""Who should stand and who should leave; how members are called; what they run."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from scheduling.containers import container_of
from scheduling.members import Member
from scheduling.muster import Lot, MemberName, Slot, muster


def slot(admission: int, pod_set: str, node: str, number: int, attempt: int = 1) -> Slot:
    return Slot(admission, attempt, Member(pod_set, node, number))


def test_pods_that_leave_a_gang_are_the_last_of_their_node():
    whole = Lot(1, 2, False, [("w", "a", 2)])
    first = Lot(5, 1, True, [("w", "a", 1)], part_of=1)
    second = Lot(6, 1, True, [("w", "a", 1), ("w", "b", 1)], part_of=1)
    found = muster([second, whole, first])
    assert found.stand == {1: (slot(1, "w", "a", 0, 2), slot(1, "w", "a", 1, 2))}
    assert found.leave == {
        5: (slot(1, "w", "a", 2, 2),),
        6: (slot(1, "w", "a", 3, 2), slot(1, "w", "b", 0, 2)),
    }


lots = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["n1", "n2"]), st.integers(1, 3)),
    max_size=3,
    unique_by=lambda pods: pods[:2],
)


@examples(max_examples=60)
@given(lots, lots, st.booleans())
def test_nobody_is_counted_twice(whole: Any, part: Any, leaving: bool):
    found = muster([Lot(1, 1, leaving, whole), Lot(2, 1, True, part, part_of=1)])
    slots = [s for side in (found.stand, found.leave) for group in side.values() for s in group]
    assert len(set(slots)) == len(slots) == sum(count for *_, count in [*whole, *part])


words = st.text("ab.-0", min_size=1, max_size=9)
names = st.builds(
    MemberName,
    st.builds(
        Slot,
        st.integers(1, 10**9),
        st.integers(1, 99),
        st.builds(Member, words, words, st.integers(0, 99)),
    ),
    st.integers(1, 9),
)


@examples(max_examples=60)
@given(names)
def test_a_name_can_be_read_back(name: MemberName):
    assert MemberName.parse(str(name)) == name


@pytest.mark.parametrize(
    "text", ["", "1", "1.1.w.0.1", "1.1.w.0.1@", "0.1.w.0.1@n", "1.1.w.01.1@n", "1.1.w.0.1@n@m"]
)
def test_what_is_no_name_is_refused(text: str):
    with pytest.raises(ValueError):
        MemberName.parse(text)


def pod(command: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"image": "i", "command": [command]}]}}


@pytest.mark.parametrize(
    ("document", "pod_set", "command"),
    [
        ({"spec": {"template": pod("job")}}, "main", "job"),
        (pod("pod"), "main", "pod"),
        (
            {"spec": {"tasks": [{"name": n, "template": pod(n)} for n in ("ps", "worker")]}},
            "worker",
            "worker",
        ),
        (
            {
                "spec": {
                    "pytorchReplicaSpecs": {n: {"template": pod(n)} for n in ("Master", "Worker")}
                }
            },
            "master",
            "Master",
        ),
        ({"a": {"template": pod("x")}, "b": {"template": pod("y")}}, "c", None),
        ("nothing", "main", None),
        (None, "main", None),
        ({"spec": {"containers": "hostile"}}, "main", None),
    ],
)
def test_the_container_of_a_pod_set_is_found_in_documents_of_all_kinds(
    document: Any, pod_set: str, command: str | None
):
    found = container_of(document, pod_set)
    assert (found and found["command"]) == (command and [command])
