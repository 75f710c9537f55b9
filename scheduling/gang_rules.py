"""What is wrong with the sizes that a gang states: its own minimum, its roles, its subgroups."""

from collections.abc import Iterator

from gpuplatform.common.diagnostics import Diagnostic
from scheduling.minima import Role
from scheduling.specs import WorkloadSpec, subject_of


def check_gang(spec: WorkloadSpec) -> Iterator[Diagnostic]:
    """Yield every finding about the gang's minima, each at its place."""
    yield from _gang(spec)
    yield from _sizes_of_elastic(spec)


def roles_of(spec: WorkloadSpec) -> list[Role]:
    """Return what a spec says of the size of each pod set."""
    return [
        Role(
            p.name,
            p.count,
            p.min_count,
            p.subgroup.size if p.subgroup else None,
            p.subgroup.min_subgroups if p.subgroup else None,
        )
        for p in spec.pod_sets
    ]


def _gang(spec: WorkloadSpec) -> Iterator[Diagnostic]:
    """Yield what is wrong with the gang's minimum and its roles (G17, G18)."""
    subject, counts = subject_of(spec), {p.name: p.count for p in spec.pod_sets}
    pods, least = sum(counts.values()), spec.min_member
    if least is not None and least > pods:
        numbers = {"min_member": least, "pods": pods}
        yield Diagnostic("GANG_LARGER_THAN_POD_COUNT", subject, "min_member", numbers)
    for role, minimum in spec.role_minima.items():
        path = f"role_minima[{role[:64]}]"
        if role not in counts:
            yield Diagnostic("ROLE_NOT_FOUND", subject, path, {"role": role[:64]})
        elif minimum > counts[role]:
            amounts: dict[str, str | int] = {
                "role": role,
                "minimum": minimum,
                "pods": counts[role],
            }
            yield Diagnostic("ROLE_MINIMUM_ABOVE_COUNT", subject, path, amounts)
    minima = sum(spec.role_minima.values())
    if least is not None and minima > least:
        sums = {"sum_of_minima": minima, "min_member": least}
        yield Diagnostic("ROLE_MINIMA_EXCEED_GANG", subject, "role_minima", sums)


def _sizes_of_elastic(spec: WorkloadSpec) -> Iterator[Diagnostic]:
    """Yield where partial admission meets an elastic workload (``admission.md`` K36)."""
    for index, pod_set in enumerate(spec.pod_sets):
        if spec.elastic and pod_set.min_count not in (None, pod_set.count):
            path, numbers = f"pod_sets[{index}].min_count", {"pod_set": pod_set.name}
            yield Diagnostic("PARTIAL_AND_ELASTIC", subject_of(spec), path, numbers)
