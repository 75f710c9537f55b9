"""The rules of nodes, asked by whoever reports or changes one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.problems import Problem
from queues import labels
from queues.rules.words import check_amount, check_label_key, check_labels, check_name
from scheduling.devices import faults_of
from scheduling.specs import NodeSpec

# A flavor with a topology: the labels of its nodes, and the labels of its levels.
Pool = tuple[Mapping[str, str], Sequence[str]]


def check_node(spec: NodeSpec, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    """Yield every problem of a node: names, labels, taints, and more offered than it has.

    ``pools`` are the flavors with a topology; a node of one must carry all levels.
    """
    yield from check_name(spec.name)
    yield from check_labels(spec.labels, "labels")
    for index, taint in enumerate(spec.taints):
        yield from check_label_key(str(taint.get("key", "")), f"taints[{index}].key")
        if not labels.is_label_value(str(taint.get("value") or "")):
            yield _one_of(f"taints[{index}].value", str(taint["value"]), ("a label value",))
    yield from _check_pools(spec, pools)
    for fault in faults_of(spec.labels, spec.annotations, spec.allocatable):
        yield _problem(fault.path, "BAD_GPU_FACTS", cause=fault.cause, **fault.numbers)
    for path, amounts in (("capacity", spec.capacity), ("allocatable", spec.allocatable)):
        for resource, amount in amounts.items():
            yield from check_label_key(resource, f"{path}[{resource[:64]}]")
            yield from check_amount(amount, f"{path}[{resource[:64]}]")
    for resource, amount in spec.allocatable.items():
        most = spec.capacity.get(resource)
        if most is not None and amount > most:
            where = f"allocatable[{resource[:64]}]"
            numbers = {"resource": resource, "amount": amount, "capacity": most}
            yield _problem(where, "ALLOCATABLE_ABOVE_CAPACITY", **numbers)


def _check_pools(spec: NodeSpec, pools: Mapping[str, Pool]) -> Iterator[Problem]:
    for flavor, (wanted, levels) in sorted(pools.items()):
        if wanted.items() <= spec.labels.items():
            for level in levels:
                if level not in spec.labels:
                    numbers = {"flavor": flavor, "level": level}
                    yield _problem(f"labels[{level}]", "NODE_WITHOUT_LEVEL", **numbers)


def _problem(path: str, code: str, **numbers: Any) -> Problem:
    return Diagnostic(code, "", path, numbers).as_problem()


def _one_of(path: str, value: str, allowed: Iterable[str]) -> Problem:
    return _problem(path, "BAD_VALUE", value=value[:64], allowed=", ".join(allowed))
