"""Rules of resource flavors (``admission.md`` K1) and topologies (K60)."""

from collections import Counter
from collections.abc import Iterator

from django.utils.translation import gettext as _

from gpuplatform.common.problems import Problem
from queues import labels
from queues.choices import PlacementPolicy
from queues.rules.words import (
    check_choice,
    check_count,
    check_label_key,
    check_labels,
    check_name,
    check_reserved,
)
from queues.specs import FlavorSpec, TaintSpec, TolerationSpec, TopologySpec

HOSTNAME = "kubernetes.io/hostname"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MOST_MARKS = 8
MOST_LEVELS = 16


def check_flavor(spec: FlavorSpec, current: FlavorSpec | None = None) -> Iterator[Problem]:
    """Yield every problem of a flavor that is, or replaces, ``current``."""
    yield from check_name(spec.name)
    yield from check_reserved(spec.name)
    yield from check_count(len(spec.node_labels), MOST_MARKS, "node_labels")
    yield from check_labels(spec.node_labels, "node_labels")
    yield from check_count(len(spec.node_taints), MOST_MARKS, "node_taints")
    for index, taint in enumerate(spec.node_taints):
        yield from _check_taint(taint, f"node_taints[{index}]")
    yield from check_count(len(spec.tolerations), MOST_MARKS, "tolerations")
    for index, toleration in enumerate(spec.tolerations):
        yield from _check_toleration(toleration, f"tolerations[{index}]")
    yield from check_choice(spec.policy, PlacementPolicy.values, "policy")
    if spec.topology:
        yield from check_name(spec.topology, "topology")
        if not spec.node_labels:
            words = _("a flavor with a topology needs a node label that tells its nodes")
            yield Problem("node_labels", "topology_needs_labels", words)
    if current and current.topology and spec.topology != current.topology:
        words = _("the topology of a flavor cannot change: {topology} stays")
        yield Problem("topology", "immutable", words.format(topology=current.topology))


def _check_taint(taint: TaintSpec, path: str) -> Iterator[Problem]:
    yield from check_label_key(taint.key, f"{path}.key")
    yield from check_choice(taint.effect, EFFECTS, f"{path}.effect")
    if not labels.is_label_value(taint.value):
        yield Problem(f"{path}.value", "bad_label_value", _("this is not a label value"))


def _check_toleration(toleration: TolerationSpec, path: str) -> Iterator[Problem]:
    yield from check_choice(toleration.operator, ("Equal", "Exists"), f"{path}.operator")
    yield from check_choice(toleration.effect, ("", *EFFECTS), f"{path}.effect")
    if toleration.key:
        yield from check_label_key(toleration.key, f"{path}.key")
    elif toleration.operator != "Exists":
        words = _("without a key the operator must be Exists")
        yield Problem(f"{path}.operator", "empty_key_needs_exists", words)
    if toleration.operator == "Exists" and toleration.value:
        yield Problem(f"{path}.value", "exists_has_no_value", _("Exists takes no value"))
    elif not labels.is_label_value(toleration.value):
        yield Problem(f"{path}.value", "bad_label_value", _("this is not a label value"))
    if toleration.seconds is not None and toleration.effect != "NoExecute":
        words = _("seconds have a meaning with the effect NoExecute only")
        yield Problem(f"{path}.seconds", "seconds_need_no_execute", words)


def check_topology(spec: TopologySpec, current: TopologySpec | None = None) -> Iterator[Problem]:
    """Yield every problem of a topology that is, or replaces, ``current``."""
    yield from check_name(spec.name)
    yield from check_reserved(spec.name)
    yield from check_count(len(spec.levels), MOST_LEVELS, "levels", least=1)
    counts = Counter(spec.levels)
    for index, level in enumerate(spec.levels):
        yield from check_label_key(level, f"levels[{index}]")
        if counts[level] > 1:
            yield Problem(f"levels[{index}]", "duplicate", _("each level has its own label"))
        if level == HOSTNAME and index < len(spec.levels) - 1:
            words = _("the hostname can only be the last level")
            yield Problem(f"levels[{index}]", "hostname_not_last", words)
    if current and current.levels != spec.levels and not _may_change(current, spec):
        words = _("levels can change only if the hostname is the last one, before and after")
        yield Problem("levels", "immutable", words)


def _may_change(before: TopologySpec, after: TopologySpec) -> bool:
    return all(spec.levels and spec.levels[-1] == HOSTNAME for spec in (before, after))
