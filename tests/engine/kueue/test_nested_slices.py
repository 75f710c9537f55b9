"""Slices made of slices in the kueue profile (K62): no recorded scenario has them."""

import pytest

from scheduling.engine.kueue.domains import Ask, Leaf, place
from scheduling.engine.snapshot import SliceLayer, TopologyRequest
from scheduling.engine.terms import TopologyMode

LEVELS = ("block", "rack", "host")
NESTED = (SliceLayer("block", 8), SliceLayer("rack", 4))


def leaves(**free: int) -> list[Leaf]:
    """Hosts by name: ``a1x`` is host ``a1x`` of rack ``a1`` in block ``a``."""
    return [Leaf((n[0], n[:2], n), n, {"gpu": gpus}) for n, gpus in sorted(free.items())]


@pytest.mark.parametrize(
    ("free", "want"),
    [
        ({"a0x": 3, "a1x": 6, "b0x": 9}, {"b0x": 8}),
        ({"a0x": 3, "a0y": 2, "a1x": 4}, {"a0x": 2, "a0y": 2, "a1x": 4}),
        ({"a0x": 3, "a1x": 3, "a2x": 3}, None),
    ],
)
def test_a_slice_is_made_of_whole_inner_slices(free, want) -> None:
    request = TopologyRequest(TopologyMode.REQUIRED, "block", slices=NESTED)
    placed = place(LEVELS, leaves(**free), Ask(request, 8, {"gpu": 1}))
    assert (placed[0] if placed else None) == want
