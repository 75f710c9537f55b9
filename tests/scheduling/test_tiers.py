"""``tier:n`` names a level by its distance from the host; nothing else does."""

import pytest

from scheduling.routes import Doors
from scheduling.specs import PodSetSpec, SliceSpec, TopologySpec, WorkloadSpec
from scheduling.topology_rules import check_levels
from scheduling.world import World
from tests.engine.builders import BLOCK, HOST, RACK, world

GPU = "nvidia.com/gpu"
PLACE = World(
    world().topology().flavor(topology="datacenter").nodes(4).build(), Doors({}, {}, {}), {}
)
NO_TIERS = (
    *("tier:", "tier:x", "tier:-1", "tier:+1", "tier: 1", "tier:1 ", "tier:1_0", "tier:1e9"),
    *("tier:\u00b9", "tier:\uff11", "tier:3", "tier:99999999999", "tier:" + "9" * 5_000),
    *("tier:1\n", "tier:rack"),
)


def findings(**asked):
    spec = WorkloadSpec("ns-x", "job", (PodSetSpec("main", 4, {GPU: 1}, **asked),))
    return [(d.code, d.path) for d in check_levels(spec, PLACE)]


@pytest.mark.parametrize(("level", "label"), [("0", HOST), ("1", RACK), ("2", BLOCK)])
def test_a_tier_counts_from_the_host(level, label) -> None:
    assert PLACE.level_of(f"tier:{level}", None) == label


@pytest.mark.parametrize("level", NO_TIERS, ids=lambda level: ascii(level)[:20])
def test_what_is_no_tier_is_an_unknown_level_wherever_it_stands(level) -> None:
    unknown = "UNKNOWN_TOPOLOGY_LEVEL"
    assert findings(topology=TopologySpec("required", level)) == [
        (unknown, "pod_sets[0].topology.level")
    ]
    assert (unknown, "pod_sets[0].slice.level") in findings(slices=(SliceSpec(level, 2),))
