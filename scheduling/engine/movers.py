"""Whom a blocked gang may move: running gangs that can start again as they are, elsewhere."""

from collections.abc import Collection

from scheduling.engine.partial import grants
from scheduling.engine.snapshot import Workload
from scheduling.engine.standing import standing
from scheduling.engine.state import State
from scheduling.engine.tenure import is_safe
from scheduling.engine.terms import StopPolicy


def movable(state: State, gang: Workload, protected: Collection[str]) -> list[Workload]:
    """Return the running work near the gang that may be moved for it.

    Whoever is passed over because it is ``protected`` is noted, as in a search for victims.
    """
    relied = state.reservations.relied_on(state.reservations)  # somebody waits for their ends
    found = []
    for work in state.running_near(gang):
        if not work.part_of and work.key not in relied and _may_move(state, gang, work):
            if work.key in protected:
                state.preemptor.spared.add(work.key)
            else:
                found.append(work)
    return found


def _may_move(state: State, gang: Workload, work: Workload) -> bool:
    """Return whether the rules allow it, and the work waits for what it holds once it has left.

    Not: what has surplus, lacks nodes, has finished pods, or is about to grow.
    """
    whole, queue = state.workloads[work.key], state.platform.cluster_queues[work.queue or ""]
    if not whole.preemptible or whole.priority > gang.priority or whole.blocked:
        return False
    if queue.inactive or queue.stop_policy is not StopPolicy.NONE:
        return False
    if whole.reclaimable or state.copies[work.key] or work.key in state.losses:
        return False
    if is_safe(queue, whole, gang, state.now):
        return False
    held = standing(whole)
    on_nodes = all(sum(one.nodes.values()) == one.count for one in held)
    return on_nodes and grants(state.asking(whole), held)
