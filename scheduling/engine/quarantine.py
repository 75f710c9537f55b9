"""A fault of the engine stops the tree in which it shows, and nobody else.

A plan that breaks a law, and a cycle that breaks off, are bugs. Rather nothing is decided than
something wrong; but a bug that one tree of queues brings to light must not keep the others from
starting work. So the trees in which it shows by themselves are shut for this cycle, and the
cycle is decided again without them. Whoever runs there runs on.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Plan
from scheduling.engine.snapshot import Snapshot
from scheduling.engine.tree import QuotaKey, queue_key, quota_tree

CAUSE = "Quarantined"  # the code with which the queues of a shut tree are inactive

Faults = tuple[str, ...]  # sentences
Decide = Callable[[Snapshot], Plan]
Laws = Callable[[Snapshot, Plan], Faults]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A plan that breaks no law, the trees it leaves out, and the faults that showed in each.

    ``plan`` None: the fault could not be pinned on trees, and nothing may be written. Trees go
    by their root: ``cohort research``, or ``queue solo`` outside every cohort.
    """

    plan: Plan | None
    quarantined: Mapping[str, Faults] = field(default_factory=dict)
    faults: Faults = ()


def decide_soundly(
    snapshot: Snapshot, decide: Decide = decide, laws: Laws = violations
) -> Verdict:
    """Return the plan of the whole snapshot, or of the trees in which no fault shows.

    Cost: one cycle and one check; where there is a fault, one of both for each tree more.
    """
    plan, faults = _tried(snapshot, decide, laws)
    if not faults:
        return Verdict(plan)
    found: dict[str, Faults] = {}
    guilty: set[str] = set()
    for root, members in sorted(_trees(snapshot).items()):
        others = snapshot.cluster_queues.keys() - members
        if alone := _tried(_shut(snapshot, others), decide, laws)[1]:
            found[f"{root.kind} {root.name}"] = alone
            guilty |= members
    if not guilty:
        return Verdict(None, faults=faults)
    rest, left = _tried(_shut(snapshot, guilty), decide, laws)
    return Verdict(None, found, left) if left else Verdict(rest, found)


def _tried(snapshot: Snapshot, decide: Decide, laws: Laws) -> tuple[Plan | None, Faults]:
    try:
        plan = decide(snapshot)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop everybody
        return None, (f"{type(error).__name__}: {error}",)
    return plan, laws(snapshot, plan)


def _trees(snapshot: Snapshot) -> dict[QuotaKey, set[str]]:
    """Return the queues of each tree, by its root."""
    tree = quota_tree(snapshot)
    members: dict[QuotaKey, set[str]] = {}
    for name in snapshot.cluster_queues:
        members.setdefault(tree.root(queue_key(name)), set()).add(name)
    return members


def _shut(snapshot: Snapshot, queues: Iterable[str]) -> Snapshot:
    """Return the snapshot with these queues inactive: they neither admit nor evict."""
    shut = {name: replace(snapshot.cluster_queues[name], inactive=CAUSE) for name in queues}
    return replace(snapshot, cluster_queues={**snapshot.cluster_queues, **shut})
