"""What is kept for a gang that waits is offered to nobody else."""

from dataclasses import replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.cycle import decide
from scheduling.engine.fragments import CLUSTER, Stranded, fragments
from scheduling.engine.machines import WHOLE
from scheduling.engine.offer import offered
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.tree import queue_key
from scheduling.engine.view import placeable
from tests.engine.builders import H100, pods, world


def after_a_cycle(*, gang: bool = True) -> Snapshot:
    """Twelve GPUs, four of them used until 1600; a gang of eight of its own has the turn."""
    made = world().nodes(3).queue("a", 12).queue("b", 0)
    made.running("r", "a", gpus=4, on={"h100-node-01": 1}, duration_s=1400.0)
    made.running("s", "b", gpus=4, on={"h100-node-02": 1}, duration_s=1400.0)
    if gang:
        made.pending("gang", "a", pods(2, 4))
    snapshot = made.build()
    return replace(snapshot, memory=decide(snapshot).memory)


def test_gpus_that_wait_for_a_gang_are_free_and_of_no_use_to_others() -> None:
    snapshot = after_a_cycle()
    assert snapshot.memory.reservations
    (found,) = fragments(snapshot)
    assert (found.free, found.usable) == (4 * WHOLE, 0)
    assert found.stranded == {Stranded.KEPT: 4 * WHOLE}
    assert found.gangs[1][CLUSTER] == found.gangs[4][CLUSTER] == 0
    assert found.in_service == 0
    assert placeable(snapshot)[H100] == 0


def test_without_that_gang_they_are_offered() -> None:
    (found,) = fragments(after_a_cycle(gang=False))
    assert (found.gangs[1][CLUSTER], found.stranded) == (4, {})
    assert placeable(after_a_cycle(gang=False))[H100] == 4


def test_quota_that_is_kept_is_not_offered_either() -> None:
    kept, free = after_a_cycle(), after_a_cycle(gang=False)
    left = [
        offered(one, Atlas(one)).soon.ledger.available(queue_key("b"), H100)
        for one in (kept, free)
    ]
    assert left == [0, 4]


def test_what_is_kept_for_a_gang_that_is_gone_is_offered() -> None:
    kept, free = after_a_cycle(), after_a_cycle(gang=False)
    gone = replace(free, memory=kept.memory)
    assert placeable(gone)[H100] == 4
    assert fragments(gone) == fragments(free)
