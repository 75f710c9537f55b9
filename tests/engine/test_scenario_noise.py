"""Whatever stands in a scenario, it is refused by path or runs; nothing else happens."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.profile import Profile
from scheduling.engine.scenario.fields import BadScenario
from scheduling.engine.scenario.loop import run
from scheduling.engine.scenario.reader import read_scenario

SAMPLES = Path(__file__).parent / "kueue" / "samples"
GOOD = [
    {name: part for name, part in scenario.items() if name != "expected"}
    for file in ("quota", "topology")
    for scenario in json.loads((SAMPLES / f"{file}.json").read_text())
]
Place = tuple[str | int, ...]
noise = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2**31, 2**63, 10**400, 1.5, float("nan"), float("inf"), -1e300]),
    st.sampled_from(["", "h100", "gpu", "a", "host", "Any", "\u0000"]),
    st.sampled_from([[], {}, [[]], [{}], {"": 1}, {"name": "x"}, [None], ["x", "x"]]),
)


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Yield the path of every value inside ``value``."""
    found = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in found:
        yield (*at, name)
        if isinstance(part, dict | list):
            yield from places(part, (*at, name))


def put(scenario: dict[str, Any], place: Place, value: Any) -> None:
    at: Any = scenario
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = value


@st.composite
def spoiled(draw: st.DrawFn) -> dict[str, Any]:
    scenario = copy.deepcopy(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 2))):
        put(
            scenario,
            draw(st.sampled_from(sorted(places(scenario), key=repr))),
            copy.deepcopy(draw(noise)),
        )
    return scenario


def refused_or_run(scenario: dict[str, Any]) -> None:
    try:
        read = read_scenario(scenario)
    except BadScenario:
        return
    for profile in (Profile.kueue(), Profile.recommended()):
        json.dumps(run(read, profile), allow_nan=False)


@given(spoiled())
@settings(max_examples=150, deadline=None)
def test_noise_is_refused_or_runs(scenario: dict[str, Any]) -> None:
    refused_or_run(scenario)


@pytest.mark.long
@given(spoiled())
@settings(max_examples=10_000, deadline=None)
def test_much_noise_is_refused_or_runs(scenario: dict[str, Any]) -> None:
    refused_or_run(scenario)
