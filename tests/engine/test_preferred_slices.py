"""Slices that should share a domain: whole as far as there is room, and never a reason to wait."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.atlas import Atlas
from scheduling.engine.capacity import FreeCapacity
from scheduling.engine.cycle import decide
from scheduling.engine.machines import GPU
from scheduling.engine.snapshot import PodSet, SliceLayer, TopologyRequest
from scheduling.engine.terms import TopologyMode
from scheduling.engine.together import assign_alone, assign_unit
from tests.engine.builders import BLOCK, RACK, pods, world
from tests.engine.test_slices import yard

Rooms = Mapping[str, int]
BY_FOUR = TopologyRequest(TopologyMode.UNCONSTRAINED, preferred_slice=SliceLayer(RACK, 4))
IN_BLOCK = replace(BY_FOUR, mode=TopologyMode.REQUIRED, level=BLOCK)


def place(
    rooms: Rooms, count: int, request: TopologyRequest, beside: Rooms | None = None
) -> dict[str, int] | None:
    atlas = Atlas(yard(rooms))
    asked = PodSet("main", count, {GPU: 1}, topology=request, beside=beside or {})
    found = assign_alone(atlas, (FreeCapacity(atlas),), asked, {GPU: "h100"})
    return dict(found.nodes) if found else None


def by_rack(placed: Rooms) -> dict[str, int]:
    racks: Counter[str] = Counter()
    for host, number in placed.items():
        racks[host[:2]] += number
    return dict(racks)


@pytest.mark.parametrize(
    ("rooms", "count", "request_", "racks"),
    [
        pytest.param(
            {"a0x": 6, "a1x": 6}, 8, IN_BLOCK, {"a0": 4, "a1": 4}, id="each slice in its rack"
        ),
        pytest.param(
            {"a0x": 5, "a1x": 2, "a2x": 2}, 8, BY_FOUR, {"a0": 4, "a1": 2, "a2": 2},
            id="one whole, and the other in the racks that are left",
        ),
        pytest.param(
            {"a0x": 3, "a1x": 3, "b0x": 4, "b1x": 2}, 8, BY_FOUR, {"b0": 4, "a0": 3, "a1": 1},
            id="a slice without a rack stays in one block",
        ),
        pytest.param(
            {"a0x": 3, "a1x": 3, "a2x": 2, "b0x": 4, "b1x": 2, "b2x": 2}, 8, IN_BLOCK,
            {"b0": 4, "b1": 2, "b2": 2}, id="the block with most whole slices is taken",
        ),
        pytest.param(
            {"a0x": 3, "a1x": 3, "b0x": 4, "b1x": 2}, 7, IN_BLOCK, None,
            id="what is required stays required",
        ),
        pytest.param(
            {"a0x": 4, "a1x": 4}, 6, BY_FOUR, {"a0": 4, "a1": 2}, id="an odd rest is no slice"
        ),
    ],
)  # fmt: skip
def test_where_slices_stand_that_should_share_a_rack(rooms, count, request_, racks):
    found = place(rooms, count, request_)
    assert (found and by_rack(found)) == racks


def test_a_subgroup_that_is_added_stands_in_one_rack_if_it_can():
    """The rack of the others has room for three of four; the one next door for all."""
    rooms = {"a0x": 3, "a1x": 4}
    assert place(rooms, 4, BY_FOUR, beside={"a0x": 4}) == {"a1x": 4}
    assert place({"a0x": 3, "a1x": 3}, 4, BY_FOUR, beside={"a0x": 4}) == {"a0x": 3, "a1x": 1}


def test_a_slice_that_lost_a_pod_is_completed_in_its_own_rack():
    assert place({"a0x": 1, "a1x": 4}, 1, BY_FOUR, beside={"a0x": 3}) == {"a0x": 1}


def test_tasks_of_one_job_stand_in_one_block_with_their_partitions_in_racks():
    atlas = Atlas(yard({"a0x": 5, "a1x": 4, "a2x": 1, "b0x": 6, "b1x": 3}))
    request = replace(IN_BLOCK, group="job")
    leader = PodSet("leader", 1, {GPU: 1}, topology=replace(request, preferred_slice=None))
    workers = PodSet("workers", 8, {GPU: 1}, topology=request)
    option = {GPU: "h100"}
    placed = assign_unit(atlas, (FreeCapacity(atlas),), (leader, workers), [option, option])
    assert placed is not None
    assert by_rack(placed[1].nodes) == {"a0": 4, "a1": 4}
    assert by_rack(placed[0].nodes).keys() <= {"a0", "a2"}


def test_a_gang_whose_slices_fit_nowhere_whole_starts_all_the_same():
    made = world().topology().nodes(6).queue("cq", 24)
    asked = replace(pods(8, 3), topology=replace(BY_FOUR, preferred_slice=SliceLayer(RACK, 8)))
    made.pending("gang", "cq", replace(asked, count=6))
    (decision,) = decide(made.build()).decisions
    assert sum(decision.assignments[0].nodes.values()) == 6


@settings(max_examples=150, deadline=None)
@given(
    rooms=st.lists(st.integers(0, 6), min_size=1, max_size=9),
    count=st.integers(1, 20),
    size=st.integers(2, 5),
    block=st.booleans(),
)
def test_a_preference_keeps_nobody_out_and_gives_what_a_demand_would(rooms, count, size, block):
    hosts = {f"{'ab'[i % 2]}{i // 2 % 3}{'xyz'[i // 6]}": pods_ for i, pods_ in enumerate(rooms)}
    firm = IN_BLOCK if block else BY_FOUR
    layer = SliceLayer(RACK, size)
    asked = replace(firm, preferred_slice=layer)
    free = place(hosts, count, replace(firm, preferred_slice=None))
    found = place(hosts, count, asked)
    assert (found is None) == (free is None)
    if found is None:
        return
    assert sum(found.values()) == count
    assert all(number <= hosts[host] for host, number in found.items())
    if not count % size:
        strict = place(hosts, count, replace(firm, preferred_slice=None, slices=(layer,)))
        assert strict is None or found == strict
    whole = sum(number // size for number in by_rack(found).values())
    most = sum(
        room // size
        for rack, room in by_rack(hosts).items()
        if not block or rack[0] == next(iter(found))[0]
    )
    assert whole == min(most, count // size)
