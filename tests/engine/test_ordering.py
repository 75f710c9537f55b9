"""Order inside a queue and among the heads of all queues."""

from scheduling.engine.lines import Lines, Walk
from scheduling.engine.ordering import Heads, Rank, precedence
from scheduling.engine.shapes import form_of
from scheduling.engine.snapshot import Workload


def work(key: str, priority: int = 0, created_at: float = 0.0) -> Workload:
    return Workload(key, key, "q", priority, created_at, ())


def test_waiting_preemptors_then_priority_then_age_then_key() -> None:
    claims = work("claims")
    line = [work("d"), work("c"), work("old", created_at=-1), work("vip", 9), claims]
    lines = Lines()
    for workload in line:
        lines.add(workload)
    walk = Walk(lines.forms("q"), precedence, [claims])
    assert list(walk) == ["claims", "vip", "old", "c", "d"]


def test_a_parked_form_is_passed_over_but_for_its_claimant() -> None:
    lines, claims = Lines(), work("z")
    for workload in [work("a"), work("b"), work("vip", 9), claims]:
        lines.add(workload)
    walk = Walk(lines.forms("q"), precedence, [claims])
    assert [next(walk), next(walk), next(walk)] == ["z", "vip", "a"]
    walk.park(form_of(work("b")))
    assert list(walk) == []


def test_a_line_forgets_whoever_left_it() -> None:
    lines = Lines()
    for workload in [work("a"), work("b")]:
        lines.add(workload)
    lines.remove(work("a"))
    assert list(Walk(lines.forms("q"), precedence)) == ["b"]
    lines.remove(work("b"))
    assert not lines.queues()


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
