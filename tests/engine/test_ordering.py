"""Order inside a queue and among the heads of all queues."""

from scheduling.engine.ordering import Heads, Rank, queue_order
from scheduling.engine.snapshot import Workload


def work(key: str, priority: int = 0, created_at: float = 0.0) -> Workload:
    return Workload(key, key, "q", priority, created_at, ())


def test_waiting_preemptors_then_priority_then_age_then_key() -> None:
    line = [work("d"), work("c"), work("old", created_at=-1), work("vip", 9), work("claims")]
    assert [w.key for w in queue_order(line, {"claims"})] == ["claims", "vip", "old", "c", "d"]


def test_a_head_that_fell_back_is_not_taken_for_the_best() -> None:
    levels = {"a": 0, "b": 1, "c": 2}
    heads = Heads(lambda w: Rank(True, levels[w.key], 0, 0.0, w.key))
    for key in levels:
        heads.offer(work(key))
    levels["a"] = 3
    order = []
    while (head := heads.pop()) is not None:
        order.append(head.key)
    assert order == ["b", "c", "a"]
