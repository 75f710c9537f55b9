"""Which flavors a pod set may use, and why not the others."""

from scheduling.engine.atlas import Atlas
from scheduling.engine.books import Books
from scheduling.engine.flavors import Assigner, options_of
from scheduling.engine.machines import CPU, GPU, Flavor, Taint, Toleration
from scheduling.engine.snapshot import FlavorQuotas, PodSet, Quota, ResourceGroup
from scheduling.engine.terms import BlockerCode
from tests.engine.builders import World, pods, world


def group(resource: str, **quotas: int) -> ResourceGroup:
    flavors = tuple(FlavorQuotas(f, {resource: Quota(n)}) for f, n in quotas.items())
    return ResourceGroup((resource,), flavors)


def made_of(*groups: ResourceGroup, **flavors: Flavor) -> World:
    made = world().queue("cq", cohort=None, groups=groups)
    made.flavors = dict(flavors)
    return made


def options(made: World, pod_set: PodSet):
    snapshot = made.build()
    return options_of(Atlas(snapshot), snapshot.cluster_queues["cq"], pod_set)


def test_groups_are_independent_and_flavors_keep_their_order() -> None:
    made = made_of(
        group(GPU, x=1, y=1), group(CPU, z=1000), x=Flavor("x"), y=Flavor("y"), z=Flavor("z")
    )
    assert options(made, pods(1, 1, cpu=1)).choices == (
        {GPU: "x", CPU: "z"},
        {GPU: "y", CPU: "z"},
    )


def test_every_refused_flavor_says_why() -> None:
    made = made_of(
        group(GPU, gone=1, tainted=1, other=1, good=1),
        tainted=Flavor("tainted", {}, (Taint("spot"),)),
        other=Flavor("other", {"tier": "b"}),
        good=Flavor("good", {"tier": "a"}),
    )
    found = options(made, pods(node_selector={"tier": "a", "unknown": "is ignored"}))
    assert found.choices == ({GPU: "good"},)
    assert [(b.code, b.where) for b in found.refusals] == [
        (BlockerCode.FLAVOR_MISMATCH, "gone"),
        (BlockerCode.TAINT, "tainted"),
        (BlockerCode.FLAVOR_MISMATCH, "other"),
    ]


def test_the_flavor_or_the_pods_tolerate_its_taint() -> None:
    spot = Toleration("spot", "Exists")
    own = Flavor("x", {}, (Taint("spot"),), (spot,))
    assert options(made_of(group(GPU, x=1), x=own), pods()).choices
    bare = Flavor("x", {}, (Taint("spot"),))
    assert not options(made_of(group(GPU, x=1), x=bare), pods()).choices
    assert options(made_of(group(GPU, x=1), x=bare), pods(tolerations=(spot,))).choices


def assigned(made: World):
    snapshot = made.build()
    books = Books(snapshot, Atlas(snapshot))
    return books, Assigner(books).assign(snapshot.workloads[-1], books.both)


def test_the_first_flavor_with_room_wins_and_the_books_stay_as_they_were() -> None:
    made = made_of(group(GPU, x=1, y=4), x=Flavor("x"), y=Flavor("y"))
    books, found = assigned(made.pending("p", "cq", gpus=2))
    assert found is not None
    assert found[0].flavors == {GPU: "y"}
    key = books.queue(made.workloads[-1])
    assert key is not None
    assert {books.now.ledger.used(key, fr) for fr in made.queues["cq"].quotas} == {0}


def test_the_largest_pod_set_first_if_the_given_order_fails() -> None:
    made = world().nodes(2).queue("cq", 8, None)
    made.node_list[1] = made.node_list[1].__class__(
        "h100-node-02", {**made.node_list[1].labels}, {GPU: 2, CPU: 120_000}
    )
    made.pending("p", "cq", pods(3, 1, "small"), pods(1, 3, "large"))
    _, found = assigned(made)
    assert found is not None
    assert [a.pod_set for a in found] == ["small", "large"]
    assert found[1].nodes == {"h100-node-01": 1}
