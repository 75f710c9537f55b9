"""Decisions as lines for the terminal: ``admitted ns-datos/train (8x4 GPUs) on node-01..08``."""

import re
from collections.abc import Iterable
from itertools import groupby

from scheduling.engine.plan import Admit, Evict, Grow, Hold, Shrink
from scheduling.engine.snapshot import Assignment, PodSet
from scheduling.engine.snapshot import Workload as Known
from scheduling.engine.usage import is_gpu, paired

_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>\d+)")


def gpus_in(known: Known, assignments: Iterable[Assignment]) -> int:
    """Return the GPUs that are granted to a workload."""
    return sum(
        assignment.count * amount
        for pod_set, assignment in paired(known, assignments)
        for name, amount in pod_set.requests.items()
        if is_gpu(name)
    )


def admitted_line(workload: object, known: Known, decision: Admit) -> str:
    """Return who started, how large it is, where, and how much of it is borrowed."""
    names = {name for assignment in decision.assignments for name in assignment.nodes}
    where = f" on {node_range(names)}" if names else ""
    borrowed = sum(amount for resource, amount in decision.borrows.items() if is_gpu(resource))
    loan = f", {borrowed} borrowed" if borrowed else ""
    return f"admitted {workload} ({granted_size(known, decision)}){where}{loan}"


def grown_line(workload: object, known: Known, decision: Admit) -> str:
    """Return who runs with more pods from now on, how many they are, and where."""
    names = {name for assignment in decision.assignments for name in assignment.nodes}
    where = f" on {node_range(names)}" if names else ""
    return f"grew {workload} to {granted_size(known, decision)}{where}"


def evicted_line(victim: object, decision: Evict, preemptor: object) -> str:
    """Return who lost its admission, why and for whom."""
    cause = f" for {preemptor}" if preemptor else ""
    if decision.moves_to:
        return f"moves {victim} to {goes_to(decision)['moves_to']}{cause}"
    return f"evicted {victim} ({decision.right or decision.reason}){cause}"


def goes_to(decision: Evict) -> dict[str, str]:
    """Return where a workload that is moved starts again, as a fact of its event."""
    names = {name for assignment in decision.moves_to for name in assignment.nodes}
    return {"moves_to": node_range(names)} if names else {}


def resized_line(
    workload: object, known: Known, decision: Grow | Shrink, preemptor: object
) -> str:
    """Return which gang runs with more or with fewer pods from now on."""
    if isinstance(decision, Shrink):
        taken = gang_size(paired(known, decision.pods))
        cause = f" for {preemptor}" if preemptor else ""
        return f"took {taken} from {workload} ({decision.right or decision.reason}){cause}"
    names = {name for assignment in decision.assignments for name in assignment.nodes}
    where = f" on {node_range(names)}" if names else ""
    before = known.admission.assignments if known.admission else ()
    more = sum(a.count for a in decision.assignments) > sum(a.count for a in before)
    verb = "grew" if more else "mended"
    return f"{verb} {workload} to {granted_size(known, decision)}{where}"


def held_line(known: Known, decision: Hold) -> str:
    """Return who waits and why, in codes."""
    codes = ", ".join(dict.fromkeys(blocker.code.value for blocker in decision.blockers))
    return f"held {known.name} ({decision.reason}{': ' if codes else ''}{codes})"


def granted_size(known: Known, decision: Admit | Grow) -> str:
    """Return the size of what starts, and of how many pods it is a part where not all do."""
    size = gang_size(paired(known, decision.assignments))
    pods = sum(assignment.count for assignment in decision.assignments)
    whole = sum(pod_set.count for pod_set in known.pod_sets)
    return size if pods == whole else f"{size}, {pods} of {whole} pods"


def gang_size(granted: Iterable[tuple[PodSet, Assignment]]) -> str:
    """Return ``8x4 GPUs`` for eight pods of four GPUs; pods alone where none asks for GPUs."""
    parts = []
    for pod_set, assignment in granted:
        gpus = sum(amount for name, amount in pod_set.requests.items() if is_gpu(name))
        count = assignment.count
        parts.append(f"{count}x{gpus} GPUs" if gpus else f"{count} pods")
    return " + ".join(parts)


def node_range(names: Iterable[str]) -> str:
    """Return node names with neighbours drawn together: ``h100-node-01..08, spare``."""
    spans: list[str] = []
    ordered = sorted(names)
    for _, group in groupby(enumerate(ordered), key=lambda place: _run(*place)):
        first, *rest = [name for _, name in group]
        match = _NUMBERED.fullmatch(rest[-1]) if rest else None
        spans.append(f"{first}..{match['number']}" if match else first)
    return ", ".join(spans)


def _run(index: int, name: str) -> tuple[str, int, int]:
    """Return what neighbours have in common; a name without a number is alone."""
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return name, 0, 0
    return match["stem"], len(match["number"]), int(match["number"]) - index


def lost_by(decision: Evict | Shrink) -> dict[str, float]:
    """Return the GPU-hours of progress that is thrown away, as a bill would count them."""
    lost = round(decision.lost_gpu_hours, 6)
    return {"lost_gpu_hours": lost} if lost else {}


def shares_of(decision: Evict) -> dict[str, str]:
    """Return the shares by which one gives way, in percent; none where one is infinite."""
    shares = decision.shares
    if shares is None or None in shares:
        return {}
    return {name: f"{value / 10:.1f}" for name, value in shares._asdict().items()}


def part_of(known: Known, assignments: Iterable[Assignment]) -> dict[str, int]:
    """Return how many pods of how many start, where not all do (``admission.md`` K36)."""
    pods = sum(assignment.count for assignment in assignments)
    asked = sum(pod_set.count for pod_set in known.pod_sets)
    return {} if pods == asked else {"pods": pods, "of_pods": asked}
