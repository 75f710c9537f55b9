"""Waits and shares are what they are called."""

import pytest

from scheduling.replay.figures import figures_of, percentile, waits_of
from scheduling.replay.player import play
from scheduling.replay.tape import Stay
from scheduling.replay.trace import size_class
from tests.scheduling.replay.scenes import comes, of, site


def stay(waited_s: float, gpus: int = 1, team: str = "t") -> Stay:
    return Stay(f"{waited_s}", "a", team, gpus, 0.0, waited_s + 10, waited_s)


@pytest.mark.parametrize(
    ("gpus", "size"),
    [(0, "1"), (1, "1"), (2, "2-4"), (4, "2-4"), (5, "5-8"), (8, "5-8"), (9, ">8")],
)
def test_gangs_have_a_size_class(gpus, size):
    assert size_class(gpus) == size


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([7.0], 99, 7.0), ([0.0, 10.0], 50, 5.0), ([0.0, 10.0, 20.0], 50, 10.0)]
    + [([float(n) for n in range(101)], percent, percent) for percent in (50, 90, 99)]
    + [([float(n) for n in range(100)], 99, 98.01)],
)
def test_a_percentile_lies_between_its_neighbours(values, percent, expected):
    assert percentile(values, percent) == pytest.approx(expected)


def test_waits_of_nobody_are_nothing():
    assert waits_of([]).workloads == 0


def test_waits_have_a_mean_over_those_that_did_not_wait_too():
    waits = waits_of([stay(0), stay(0), stay(30)])
    assert (waits.workloads, waits.mean_s, waits.p50_s) == (3, 10, 0)


def test_a_replay_is_told_by_size_team_and_queue():
    two = site(2, a=4, b=4)
    tape = play(two, of(comes("x", 0, 100, 4, pods=2), comes("y", 10, 100, 1, "b")))
    found = figures_of("name", two, tape)
    assert {size: w.workloads for size, w in found.by_size.items()} == {
        "1": 1,
        "2-4": 0,
        "5-8": 1,
        ">8": 0,
    }
    assert found.by_queue["b"].mean_s == found.by_team["b"].mean_s == 90
    assert found.use.gpu_hours == pytest.approx((8 * 100 + 1 * 100) / 3600)
    assert found.utilisation == pytest.approx(900 / (8 * 200))
    assert found.utilisation_while_coming == 1.0  # in the first ten seconds
    assert found.use_by_queue["a"].borrowed_gpu_hours == pytest.approx(400 / 3600)
    assert found.mean_completion_s == pytest.approx((100 + 190) / 2)
    assert found.makespan_s == 200


def test_without_nodes_use_is_a_share_of_what_is_promised():
    bare = site(a=4)
    bare = bare.__class__(**{f: getattr(bare, f) for f in bare.__slots__} | {"nodes": ()})
    assert figures_of("x", bare, play(bare, of(comes("x", 0, 10, 2)))).utilisation == 0.5
