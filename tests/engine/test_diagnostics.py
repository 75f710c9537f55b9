"""The right answers of ``samples/manifests/README.md``, built by builders."""

from dataclasses import dataclass, replace
from dataclasses import field as field_

import pytest

from scheduling.engine.diagnostics import (
    ceilings,
    check_promises,
    check_workload,
    resource_ceilings,
)
from scheduling.engine.machines import CPU, GPU, Flavor, Node, Taint
from scheduling.engine.snapshot import FlavorQuotas, PodSet, Preemption, Quota, ResourceGroup
from scheduling.engine.terms import DiagnosticCode as Code
from tests.engine.builders import (
    BLOCK,
    H100,
    RECLAIM_LOWER,
    World,
    columns,
    pods,
    required,
    three_teams,
    two_teams,
    volcano,
    world,
)


def single() -> World:
    """``kueue-clusterqueue-single.yaml``."""
    return world().queue(
        "cq-team-datos", 16, "llm-platform", borrow=8, lend=8, cpu=128, memory=512
    )


def three_teams_file() -> World:
    """``kueue-three-teams.yaml`` without nodes: only cq-datos has a preemption section."""
    made = three_teams(Preemption())
    made.node_list.clear()
    return made


def first_pair(total: int) -> World:
    return volcano(total, [("team-datos", 8, 16), ("team-ia", 4, 8)])


def second_pair(total: int) -> World:
    return volcano(total, [("team-datos", 16, 24), ("team-ia", 8, 16)])


@dataclass(frozen=True)
class Promise:
    id: str
    world: World
    want: list[tuple[Code, dict[str, int]]]


EXCEED, STRANDED = Code.GUARANTEES_EXCEED_CAPACITY, Code.STRANDED_CAPACITY

PROMISES = [
    Promise("one queue of 16 on 16 GPUs: no warning", single().nodes(4), []),
    Promise("one queue of 16 on 32", single().nodes(8), [(STRANDED, {"amount": 16})]),
    Promise("one queue of 16 on 4", single().nodes(1), [(EXCEED, {"sum": 16, "capacity": 4})]),
    Promise("no nodes known: silence", single(), []),
    Promise("two teams on 16", two_teams().nodes(4), [(EXCEED, {"sum": 24, "capacity": 16})]),
    Promise("two teams on 32", two_teams().nodes(8), [(STRANDED, {"amount": 8})]),
    Promise("two teams on 4", two_teams().nodes(1), [(EXCEED, {"sum": 24, "capacity": 4})]),
    Promise(
        "one of four nodes not ready",
        single().nodes(3).nodes(1, ready=False),
        [(EXCEED, {"sum": 16, "capacity": 12})],
    ),
    Promise("three teams on 4", three_teams(RECLAIM_LOWER), []),
    Promise(
        "three teams on 16", three_teams(RECLAIM_LOWER).nodes(3), [(STRANDED, {"amount": 12})]
    ),
    Promise("first Volcano pair on 32", first_pair(32), [(STRANDED, {"amount": 8})]),
    Promise("first Volcano pair on 16", first_pair(16), []),
    Promise("first Volcano pair on 4", first_pair(4), [(EXCEED, {"sum": 12, "capacity": 4})]),
    Promise("second Volcano pair on 32", second_pair(32), []),
    Promise("second Volcano pair on 16", second_pair(16), [(EXCEED, {"sum": 24, "capacity": 16})]),
]


@pytest.mark.parametrize("case", PROMISES, ids=lambda case: case.id)
def test_promises(case: Promise) -> None:
    found = check_promises(case.world.build())
    assert [f.code for f in found] == [code for code, _ in case.want]
    for finding, (_, numbers) in zip(found, case.want, strict=True):
        assert numbers.items() <= finding.numbers.items()


def test_lenders_that_cannot_take_back_are_named() -> None:
    (finding,) = check_promises(three_teams_file().build())
    assert finding.code is Code.LENDER_CANNOT_RECLAIM
    assert finding.numbers == {"queues": "cq-ia, cq-plataforma"}


def test_a_pool_without_gpus_is_judged_by_its_cpus() -> None:
    made = (
        world()
        .flavor("cpu-pool")
        .queue("cq", groups=(columns("cpu-pool", {CPU: Quota(200_000)}),), cohort=None)
    )
    made.node_list = [Node("c1", {"accelerator": "cpu-pool"}, {CPU: 64_000})]
    (finding,) = check_promises(made.build())
    assert finding.numbers == {"sum": 200_000, "capacity": 64_000, "resource": CPU}


@dataclass(frozen=True)
class Ceiling:
    id: str
    world: World
    want: dict[str, int]


CEILINGS = [
    Ceiling("one queue: nobody to borrow from", single(), {"cq-team-datos": 16}),
    Ceiling("two teams", two_teams(), {"cq-team-datos": 20, "cq-team-ia": 16}),
    Ceiling("three teams", three_teams(), {"cq-datos": 4, "cq-ia": 4, "cq-plataforma": 4}),
    Ceiling("first Volcano pair on 32", first_pair(32), {"team-datos": 16, "team-ia": 8}),
    Ceiling("first Volcano pair on 16", first_pair(16), {"team-datos": 12, "team-ia": 8}),
    Ceiling("first Volcano pair on 4", first_pair(4), {"team-datos": 8, "team-ia": 4}),
    Ceiling("second Volcano pair on 32", second_pair(32), {"team-datos": 24, "team-ia": 16}),
    Ceiling("second Volcano pair on 16", second_pair(16), {"team-datos": 16, "team-ia": 8}),
]


@pytest.mark.parametrize("case", CEILINGS, ids=lambda case: case.id)
def test_ceilings(case: Ceiling) -> None:
    found = ceilings(case.world.build())
    assert {queue: amounts[H100] for queue, amounts in found.items()} == case.want


def test_the_resource_ceiling_sums_the_flavors() -> None:
    assert resource_ceilings(two_teams().build(), "cq-team-datos")[CPU] == 192_000


MASTER_WORKERS = (pods(1, 4, "master"), pods(7, 4, "worker"))
FULL = (
    pods(1, 4, "master", cpu=16, memory=64),
    pods(7, 4, "worker", cpu=16, memory=64),
)
WHOLE_32 = (Code.NEEDS_WHOLE_CLUSTER, {"resource": GPU, "need": 32, "have": 32})
OVER_16 = (Code.NEVER_FITS_CLUSTER, {"resource": GPU, "need": 32, "have": 16})


def never_fits(ceiling: int, largest: int, queue: str) -> tuple[Code, dict[str, object]]:
    numbers = {"resource": GPU, "need": 32, "ceiling": ceiling, "largest_gang": largest,
               "pods": 8, "queue": queue}  # fmt: skip
    return Code.NEVER_FITS_QUEUE, numbers


@dataclass(frozen=True)
class Work:
    id: str
    world: World
    pod_sets: tuple[PodSet, ...]
    want: list[tuple[Code, dict[str, object]]]
    queue: str | None = "cq-team-datos"
    changes: dict[str, object] = field_(default_factory=dict)


EIGHT = (pods(8, 4),)
TOPOLOGY = (pods(8, 4, topology=required(BLOCK)),)
NO_BLOCK = (
    Code.NEVER_FITS_TOPOLOGY,
    {"level": BLOCK, "resource": GPU, "largest": 16, "need": 32, "pods": 8, "largest_pods": 4},
)

WORK = [
    Work("PyTorchJob on 32 GPUs", two_teams().nodes(8), MASTER_WORKERS,
         [never_fits(20, 5, "cq-team-datos"), WHOLE_32]),
    Work("PyTorchJob on 16 GPUs", two_teams().nodes(4), MASTER_WORKERS,
         [never_fits(20, 5, "cq-team-datos"), OVER_16]),
    Work("PyTorchJob with the single queue", single().nodes(8), MASTER_WORKERS,
         [never_fits(16, 4, "cq-team-datos"), WHOLE_32]),
    Work("the full PyTorchJob names only the GPU", two_teams().nodes(8), FULL,
         [never_fits(20, 5, "cq-team-datos"), WHOLE_32]),
    Work("four workers and a master fit", two_teams().nodes(8),
         (pods(1, 4, "master"), pods(4, 4, "worker")), []),
    Work("RayJob on 16 GPUs", two_teams().nodes(4),
         (pods(1, 4, "head", cpu=16, memory=64), pods(3, 4, "workers", cpu=16, memory=64)),
         [(Code.NEEDS_WHOLE_CLUSTER, {"resource": GPU, "need": 16, "have": 16})]),
    Work("RayJob on 4 GPUs", two_teams().nodes(1), (pods(1, 4, "head"), pods(3, 4, "workers")),
         [(Code.NEVER_FITS_CLUSTER, {"resource": GPU, "need": 16, "have": 4})]),
    Work("PodGroup on the first Volcano pair, 32", first_pair(32), EIGHT,
         [never_fits(16, 4, "team-datos"), WHOLE_32], "team-datos"),
    Work("PodGroup on the first Volcano pair, 16", first_pair(16), EIGHT,
         [never_fits(12, 3, "team-datos"), OVER_16], "team-datos"),
    Work("the second pair holds six of eight", second_pair(32), EIGHT,
         [never_fits(24, 6, "team-datos"), WHOLE_32], "team-datos"),
    Work("the second pair on 16", second_pair(16), EIGHT,
         [never_fits(16, 4, "team-datos"), OVER_16], "team-datos"),
    Work("hard topology on 32", first_pair(32).topology(), TOPOLOGY,
         [never_fits(16, 4, "team-datos"), WHOLE_32, NO_BLOCK], "team-datos"),
    Work("hard topology on 16", first_pair(16).topology(), TOPOLOGY,
         [never_fits(12, 3, "team-datos"), OVER_16, NO_BLOCK], "team-datos"),
    Work("both layers: a second ceiling", two_teams().nodes(8)
         .cohort("volcano", nominal=20)
         .queue("team-datos", 8, "volcano", lend=0, borrow=8), MASTER_WORKERS,
         [never_fits(20, 5, "cq-team-datos"), never_fits(16, 4, "team-datos"), WHOLE_32],
         changes={"ceiling_queue": "team-datos"}),
    Work("an empty database", two_teams(), MASTER_WORKERS,
         [never_fits(20, 5, "cq-team-datos")]),
    Work("a job of one GPU", two_teams().nodes(1), (pods(),), []),
    Work("a pod larger than any node", two_teams().nodes(8), (pods(1, 8),),
         [(Code.NEVER_FITS_NODE,
           {"resource": GPU, "need": 8, "largest": 4, "pod_set": "main"})]),
    Work("whole pods that do not pack", two_teams().nodes(4), (pods(5, 3),),
         [(Code.NEVER_FITS_CLUSTER,
           {"resource": GPU, "need": 15, "have": 12, "pods": 5, "fits": 4})]),
    Work("a taint on all nodes", three_teams_file().nodes(1, taints=(Taint("nvidia.com/gpu"),)),
         (pods(),),
         [(Code.TAINT_NOT_TOLERATED, {"taint": "nvidia.com/gpu:NoSchedule", "pod_set": "main"})],
         "cq-datos"),
    Work("a selector against the flavor", two_teams().nodes(1),
         (pods(node_selector={"accelerator": "a100"}),),
         [(Code.FLAVOR_MISMATCH, {"label": "accelerator", "asks": "a100", "has": "h100-sxm",
                                  "flavor": "h100-sxm", "pod_set": "main"})]),
    Work("outside every queue", two_teams().nodes(1), (pods(1, 4),),
         [(Code.NEEDS_WHOLE_CLUSTER, {"resource": GPU, "need": 4, "have": 4})], None),
    Work("a cordoned node is only busy", two_teams().nodes(4).nodes(1, schedulable=False),
         (pods(5, 4),), [(Code.NEEDS_WHOLE_CLUSTER, {"resource": GPU, "need": 20, "have": 20})]),
]  # fmt: skip


@pytest.mark.parametrize("case", WORK, ids=lambda case: case.id)
def test_workloads(case: Work) -> None:
    snapshot = case.world.pending("job", case.queue, *case.pod_sets, **case.changes).build()
    found = check_workload(snapshot, snapshot.workloads[-1])
    assert [(f.code, dict(f.numbers)) for f in found] == case.want


def two_flavors(**nominal: int) -> World:
    """One queue with 64 GPUs each of two flavors, on eight nodes of eight GPUs of each."""
    nominal = nominal or {"h100": 64, "a100": 64}
    made = world()
    flavors = tuple(FlavorQuotas(name, {GPU: Quota(n)}) for name, n in nominal.items())
    for name in nominal:
        made.flavor(name).nodes(8, 8)
        made.node_list[-8:] = [
            replace(node, labels={"accelerator": name}) for node in made.node_list[-8:]
        ]
    return made.queue("cq", cohort=None, groups=(ResourceGroup((GPU,), flavors),))


def on(flavor: str, count: int, gpus: int, name: str) -> PodSet:
    return pods(count, gpus, name, node_selector={"accelerator": flavor})


LIMITED, BARE = Code.NEVER_FITS_QUEUE, Code.NEVER_FITS_CLUSTER
JOINT = [
    ("one pod set never mixes flavors", two_flavors(), (pods(12, 8),),
     [(LIMITED, {"need": 96, "ceiling": 64, "largest_gang": 8}),
      (BARE, {"need": 96, "have": 64})]),
    ("the larger flavor counts", two_flavors(h100=32, a100=64), (pods(12, 8),),
     [(LIMITED, {"need": 96, "ceiling": 64, "largest_gang": 8}),
      (BARE, {"need": 96, "have": 64})]),
    ("one flavor is enough", two_flavors(), (pods(8, 8),), []),
    ("two pod sets share the flavors out", two_flavors(),
     (pods(6, 8, "a"), pods(6, 8, "b")), []),
    ("the first pod set gives way to a later one", two_flavors(h100=64, a100=32),
     (pods(4, 8, "a"), pods(8, 8, "b")), []),
    ("three pod sets of which two must share", two_flavors(),
     (pods(5, 8, "a"), pods(5, 8, "b"), pods(5, 8, "c")),
     [(LIMITED, {"need": 120, "ceiling": 104, "largest_gang": 13}),
      (BARE, {"need": 120, "have": 104})]),
    ("a selector leaves one flavor only", two_flavors(h100=32, a100=64),
     (on("h100", 5, 8, "a"),), [(LIMITED, {"need": 40, "ceiling": 32, "largest_gang": 4})]),
    ("two pod sets tied to one flavor", two_flavors(),
     (on("h100", 5, 8, "a"), on("h100", 5, 8, "b"), pods(1, 8, "c")),
     [(LIMITED, {"need": 88, "ceiling": 72, "largest_gang": 9}),
      (BARE, {"need": 88, "have": 72})]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("made", "pod_sets", "want"), [row[1:] for row in JOINT], ids=[row[0] for row in JOINT]
)
def test_pod_sets_are_assigned_to_flavors_jointly(
    made: World, pod_sets: tuple[PodSet, ...], want: list[tuple[Code, dict[str, object]]]
) -> None:
    snapshot = made.pending("job", "cq", *pod_sets).build()
    found = check_workload(snapshot, snapshot.workloads[-1])
    assert [f.code for f in found if f.code is not Code.NEEDS_WHOLE_CLUSTER] == [
        c for c, _ in want
    ]
    for finding, (_, numbers) in zip(found, want, strict=False):
        assert numbers.items() <= finding.numbers.items()


def test_resources_that_no_flavor_has_together_are_named_by_the_most_important() -> None:
    rich = {
        "gpus": {GPU: Quota(8), CPU: Quota(1_000)},
        "cpus": {GPU: Quota(1), CPU: Quota(64_000)},
    }
    flavors = tuple(FlavorQuotas(name, quotas) for name, quotas in rich.items())
    made = world().flavor("gpus").flavor("cpus")
    made.queue("cq", cohort=None, groups=(ResourceGroup((GPU, CPU), flavors),))
    snapshot = made.pending("job", "cq", pods(4, 2, cpu=8)).build()
    (finding,) = check_workload(snapshot, snapshot.workloads[-1])
    assert finding.code is Code.NEVER_FITS_QUEUE
    assert finding.numbers["resource"] == GPU
    assert (finding.numbers["need"], finding.numbers["ceiling"]) == (8, 0)


def test_a_pod_is_measured_by_the_nodes_of_its_own_flavor() -> None:
    made = two_flavors()
    made.node_list = [
        replace(n, allocatable={GPU: 4}) if n.labels["accelerator"] == "a100" else n
        for n in made.node_list
    ]
    pod_sets = (pods(1, 8, "head"), on("a100", 1, 8, "worker"))
    snapshot = made.pending("job", "cq", *pod_sets).build()
    (finding,) = check_workload(snapshot, snapshot.workloads[-1])
    assert finding.code is Code.NEVER_FITS_NODE
    assert (finding.numbers["largest"], finding.numbers["pod_set"]) == (4, "worker")


def test_a_search_that_is_too_wide_never_calls_work_impossible() -> None:
    nominal = {f"kind-{n}": 64 for n in range(16)}
    pod_sets = [pods(n + 1, 7, f"set-{n}") for n in range(8)]
    snapshot = two_flavors(**nominal).pending("job", "cq", *pod_sets).build()
    assert check_workload(snapshot, snapshot.workloads[-1]) == ()


def test_a_flavor_taint_is_named() -> None:
    made = two_teams().nodes(1)
    made.flavors = {"h100-sxm": Flavor("h100-sxm", {}, (Taint("dedicated", "ml"),))}
    snapshot = made.pending("job", "cq-team-datos").build()
    (finding,) = check_workload(snapshot, snapshot.workloads[0])
    assert finding.code is Code.TAINT_NOT_TOLERATED
    assert finding.numbers["taint"] == "dedicated=ml:NoSchedule"
