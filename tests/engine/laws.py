"""Makes the tests of laws: each holds in a few worlds of chance, and in many with ``-m long``.

    test_law, test_law_in_many_worlds = laws(check_this, check_that, few=20, many=2000)

A law is a function that builds its own world from a source of chance and asserts; its name,
without ``check_``, is its sentence.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

Check = Callable[[Random], None]

# A smaller seed is no simpler world, so nothing is shrunk.
_SEEDS = st.integers(0, 2**32 - 1)
_PHASES = (Phase.explicit, Phase.generate)


def laws(*checks: Check, few: int, many: int) -> tuple[Any, Any]:
    """Return a test of every law in ``few`` worlds, and a long one in those of ``many`` seeds."""
    ids = [check.__name__.removeprefix("check_").replace("_", " ") for check in checks]
    each = pytest.mark.parametrize("check", checks, ids=ids)

    @settings(max_examples=few, deadline=None, phases=_PHASES)
    @given(_SEEDS)
    @each
    def test_law(check: Check, seed: int) -> None:
        check(Random(seed))

    @pytest.mark.long
    @each
    def test_law_in_many_worlds(check: Check) -> None:
        for seed in range(many):
            check(Random(seed))

    return test_law, test_law_in_many_worlds
