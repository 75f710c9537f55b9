"""A state that lives for weeks remembers no more than it could need.

Every kind of pod, every hole that any node ever was, and all that was worked out for them is
kept to answer the next question fast. Where that has become far more than what stands and
waits, a new state is cheaper than a search for what may be forgotten: it is built from the
old one's own snapshot and decides the same (``decisions.md`` 4).
"""

from scheduling.engine.state import State

SPARE = 50_000  # holes or kinds of pods remembered beyond need, before a state is renewed
TIMES = 4  # and so many for each node and each workload


def renewed(state: State) -> State:
    """Return the state, or an equal one without memories where it has far too many.

    Call it between two cycles. Cost: O(1); O(everything) once in ``SPARE`` new memories.
    """
    remembered = len(state.atlas.ground.holes) + len(state.shapes)
    if remembered <= SPARE + TIMES * (len(state.atlas.nodes) + len(state.workloads)):
        return state
    return State(state.snapshot())
