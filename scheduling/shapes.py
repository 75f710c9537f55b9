"""Pod sets as the engine sees them, from what their rows say: equal shapes become one object."""

from functools import lru_cache
from typing import Any

from scheduling.charging import charges_of
from scheduling.engine.snapshot import PodSet, Workload
from scheduling.jsontexts import read_json
from scheduling.minima import Role, with_minima
from scheduling.readers import affinity_of, device_request_of, tolerations_of, topology_of
from scheduling.specs import SliceSpec

SHAPE = (
    *("name", "count", "min_count", "subgroup_size", "min_subgroups", "topology_mode"),
    *("topology_level", "group", "device_locality", "device_memory_mib"),
)
SHAPE_TEXTS = ("requests", "node_selector", "tolerations", "affinity", "slices")


@lru_cache(maxsize=20_000)
def pod_sets_of(
    shapes: tuple[tuple[Any, ...], ...], min_member: int | None, role_minima: str, rules: str
) -> tuple[tuple[PodSet, ...], int | None]:
    """Return the pod sets of equal gangs as one object, and the gang's minimum.

    ``rules``: those by which quota is charged; other rules make other pod sets.
    """
    del rules
    bare = Workload("", "", None, 0, 0.0, tuple(map(_pod_set, shapes)))
    roles = [Role(*shape[:1], *shape[1:5]) for shape in shapes]
    sized = with_minima(bare, min_member, read_json(role_minima), roles)
    return sized.pod_sets, sized.min_member


def _pod_set(shape: tuple[Any, ...]) -> PodSet:
    said = dict(zip((*SHAPE, *SHAPE_TEXTS), shape, strict=True))
    said |= {name: read_json(said[name]) for name in SHAPE_TEXTS}
    layers = [SliceSpec(**layer) for layer in said["slices"]]
    return PodSet(
        name=said["name"],
        count=said["count"],
        requests=said["requests"],
        node_selector=said["node_selector"],
        tolerations=tolerations_of(said["tolerations"]),
        topology=topology_of(said["topology_mode"], said["topology_level"], layers, said["group"]),
        affinity=affinity_of(said["affinity"]),
        charges=charges_of(said["requests"]),
        device=device_request_of(
            said["requests"], said["device_locality"], said["device_memory_mib"]
        ),
    )
