"""What a solver can place, the cycle places: one queue, equal priorities, crowded clusters."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.machines import CPU, GPU, Taint, Toleration
from scheduling.engine.plan import Admit, Plan
from scheduling.engine.snapshot import Assignment, Snapshot
from tests.engine.builders import BLOCK, HOST, RACK, pods, required, world
from tests.engine.oracle import Answer, Verdict, fit_all
from tests.engine.packings import crowded

FILLS = (85, 90, 95, 98)  # per cent of the GPUs
BAR = 0.95  # of the instances in which the model places all
TAINT, TOLERATES = Taint("dedicated", "ml"), Toleration("dedicated", "Exists")


def gang(count: int, gpus: int, **changes: object):
    return pods(count, gpus, **changes)


QUESTIONS = {
    "two gangs on two nodes": ([gang(1, 4), gang(1, 4)], True),
    "one GPU too many": ([gang(1, 4), gang(1, 4), gang(1, 1)], False),
    "splinters do not add up": ([gang(1, 3), gang(1, 3), gang(1, 2)], False),
    "a small one leaves the large ones their nodes": ([gang(3, 1), gang(1, 4)], True),
    "within one node": ([gang(4, 1, topology=required(HOST))], True),
    "more than one node holds": ([gang(5, 1, topology=required(HOST))], False),
    "within one rack": ([gang(8, 1, topology=required(RACK))], True),
    "two of which each needs half a rack": ([gang(4, 1, topology=required(HOST))] * 2, True),
    "a label that no node has": ([gang(1, 1, node_selector={"model": "l40s"})], False),
    "another resource is what is short": ([gang(1, 1, cpu=120), gang(1, 1, cpu=121)], False),
}


@pytest.mark.parametrize(("sets", "fits"), QUESTIONS.values(), ids=QUESTIONS)
def test_the_model_knows_the_rules(sets, fits) -> None:
    made = world().topology().nodes(2).queue("team", 100, None, cpu=10_000)
    for number, pod_set in enumerate(sets):
        made.pending(f"g{number}", "team", pod_set)
    assert fit_all(made.build()).answer is (Answer.ALL if fits else Answer.NOT_ALL)


@pytest.mark.parametrize(
    ("changes", "asked", "fits"),
    [
        ({"taints": (TAINT,)}, {}, False),
        ({"taints": (TAINT,)}, {"tolerations": (TOLERATES,)}, True),
        ({"ready": False}, {}, False),
        ({"schedulable": False}, {}, False),
        ({"unmanaged": {GPU: 4}}, {}, False),
        ({"unmanaged": {GPU: 3}}, {}, True),
        ({"allocatable": {GPU: 4, CPU: 1000, "pods": 0}}, {}, False),
    ],
)
def test_the_model_knows_which_nodes_suit(changes, asked, fits) -> None:
    made = world().topology().nodes(1, **changes).queue("team", 100, None)
    made.pending("g", "team", gang(1, 1, **asked))
    assert fit_all(made.build()).answer is (Answer.ALL if fits else Answer.NOT_ALL)


@pytest.mark.parametrize(("nominal", "fits"), [(7, False), (8, True)])
def test_the_model_knows_the_quota(nominal, fits) -> None:
    made = world().topology().nodes(2).queue("team", nominal, None)
    made.pending("g", "team", gang(2, 4, topology=required(BLOCK)))
    assert fit_all(made.build()).answer is (Answer.ALL if fits else Answer.NOT_ALL)


def test_a_bound_that_is_reached_is_no_answer() -> None:
    assert fit_all(crowded(2, 98), effort=1e-9).answer is Answer.UNKNOWN


@dataclass(frozen=True)
class Match:
    """One instance: what the model says, and what the cycle left out of it."""

    fill: int
    seed: int
    snapshot: Snapshot
    verdict: Verdict
    left: tuple[str, ...]

    @property
    def gap(self) -> int:
        """The GPUs of the gangs that were left out."""
        out = [w for w in self.snapshot.workloads if w.key in self.left]
        return sum(p.count * p.requests.get(GPU, 0) for w in out for p in w.pod_sets)


def matches(fills: Iterable[int], seeds: Iterable[int], most_nodes: int) -> Iterator[Match]:
    """Let both decide. Whatever either of them places is a sound plan, or the test fails."""
    for fill in fills:
        for seed in seeds:
            snapshot = crowded(seed, fill, most_nodes)
            plan, verdict = decide(snapshot), fit_all(snapshot)
            assert violations(snapshot, plan) == ()
            if verdict.answer is Answer.ALL:
                assert violations(snapshot, as_plan(snapshot, verdict)) == ()
            admitted = {d.workload for d in plan.decisions if isinstance(d, Admit)}
            left = tuple(w.key for w in snapshot.workloads if w.key not in admitted)
            assert left or verdict.answer is not Answer.NOT_ALL, "the model missed a packing"
            yield Match(fill, seed, snapshot, verdict, left)


def as_plan(snapshot: Snapshot, verdict: Verdict) -> Plan:
    """The model's solution as a plan, which the engine's own laws judge."""
    admits = (
        Admit(
            work.key,
            tuple(
                Assignment(
                    p.name,
                    p.count,
                    dict.fromkeys(p.requests, "gpu"),
                    verdict.nodes[work.key, p.name],
                )
                for p in work.pod_sets
            ),
        )
        for work in snapshot.workloads
    )
    return Plan(tuple(admits))


def rate(found: list[Match]) -> float:
    """In how many of the instances that can be placed whole nobody was left out."""
    whole = [match for match in found if match.verdict.answer is Answer.ALL]
    return sum(not match.left for match in whole) / len(whole)


def report(found: list[Match]) -> str:
    """The figures by fill, and the gap wherever somebody was left out."""
    lines = ["fill  instances  model: all  not all  unknown  ours: all"]
    for fill in sorted({match.fill for match in found}):
        mine = [match for match in found if match.fill == fill]
        by = [[m for m in mine if m.verdict.answer is answer] for answer in Answer]
        ours = sum(not match.left for match in by[0])
        lines.append(
            f"{fill:3}%  {len(mine):9}  {len(by[0]):10}  {len(by[1]):7}  {len(by[2]):7}  {ours:9}"
        )
    lines.append(f"placed all where the model does: {100 * rate(found):.1f} %")
    lines.extend(
        f"gap: fill {m.fill} seed {m.seed}: {len(m.left)} of {len(m.snapshot.workloads)} gangs,"
        f" {m.gap} GPUs left out ({', '.join(m.left)})"
        for m in found
        if m.left and m.verdict.answer is Answer.ALL
    )
    return "\n".join(lines)


def test_what_a_solver_places_the_cycle_places() -> None:
    found = list(matches(FILLS, range(4), 40))
    assert sum(match.verdict.answer is Answer.ALL for match in found) >= 6
    assert rate(found) >= BAR, report(found)


@pytest.mark.long
def test_what_a_solver_places_the_cycle_places_on_two_hundred_nodes(capsys) -> None:
    found = list(matches(FILLS, range(60), 200))
    with capsys.disabled():
        print(f"\n{report(found)}")  # noqa: T201 - the figure is what this test is for
    assert sum(match.verdict.answer is Answer.ALL for match in found) >= 100
    assert rate(found) >= BAR


def test_a_cluster_in_another_order_is_packed_the_same() -> None:
    snapshot = crowded(1, 95, 40)
    turned = replace(snapshot, nodes=snapshot.nodes[::-1], workloads=snapshot.workloads[::-1])
    assert decide(turned).decisions == decide(snapshot).decisions
