"""HyperNodes into rows: the label of each node that one holds, and the level of its tier."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.problems import Rejected
from gpuplatform.doors.hypernodes.specs import (
    KIND,
    NODE,
    TOPOLOGY,
    HyperNodeSpec,
    outermost_first,
)
from gpuplatform.doors.report import CHANGED, CREATED, UNCHANGED
from queues import services as queues
from queues.labels import tier_labels, tier_of
from queues.models import Topology, User
from queues.rules.flavors import HOSTNAME
from queues.specs import TopologySpec
from scheduling.models import Node
from scheduling.services import describe_node, save_node

Nodes = Mapping[str, Mapping[str, str]]  # labels by name


def keep(
    spec: HyperNodeSpec, told: list[Diagnostic], kept: set[str], user: User | None, reason: str
) -> str:
    """Let the nodes be in it that it names now, and no others; return the action.

    Members are resolved among the nodes that are known: HyperNodes come after nodes, and lower
    tiers before higher ones.

    Args:
        spec: the HyperNode.
        told: what its owner should know is added here.
        kept: the HyperNodes of the same submission that are kept already.
        user: who asks.
        reason: for the audit trail.

    Raises:
        Rejected: its tier has another name, or a node is in another one of the submission.
    """
    nodes: Nodes = dict(Node.objects.values_list("name", "labels"))
    held = _held(spec, nodes, told)
    was = {name for name, labels in nodes.items() if labels.get(spec.key) == spec.name}
    _refuse_second_parent(spec, held, nodes, kept, told)
    if not held and not was:
        told.append(_finding(spec, "HYPERNODE_EMPTY"))
        return UNCHANGED
    has_new_level = _keep_level(spec, user, reason)
    for name in sorted(held ^ was | {n for n in held if nodes[n].get(spec.key) != spec.name}):
        row = describe_node(Node.objects.get(name=name))
        labels = {key: text for key, text in row.labels.items() if key != spec.key}
        labels |= {spec.key: spec.name} if name in held else {}
        labels.setdefault(HOSTNAME, name)
        save_node(replace(row, labels=labels), actor=user, reason=reason, keeps_tiers=False)
    if not was:
        return CREATED
    return CHANGED if held != was or has_new_level else UNCHANGED


def _held(spec: HyperNodeSpec, nodes: Nodes, told: list[Diagnostic]) -> set[str]:
    """Return the names of the nodes in it, by themselves or through HyperNodes below."""
    held: set[str] = set()
    for member in spec.members:
        below = _below(spec, nodes)
        candidates = {name: {name} for name in nodes} if member.kind == NODE else below
        found = [
            names
            for name, names in candidates.items()
            if member.takes(name, nodes.get(name, {}) if member.kind == NODE else {})
        ]
        if member.exact and not found:
            numbers = {"kind": member.kind, "member": member.exact[:64]}
            told.append(
                Diagnostic("HYPERNODE_MEMBER_UNKNOWN", _subject(spec), member.path, numbers)
            )
        held.update(*found)
    return held


def _below(spec: HyperNodeSpec, nodes: Nodes) -> dict[str, set[str]]:
    """Return the HyperNodes of lower tiers, with the nodes in them."""
    found: dict[str, set[str]] = {}
    for name, labels in nodes.items():
        for key, domain in tier_labels(labels).items():
            if (tier_of(key) or (0, ""))[0] < spec.tier:
                found.setdefault(domain, set()).add(name)
    return found


def _refuse_second_parent(
    spec: HyperNodeSpec, held: set[str], nodes: Nodes, kept: set[str], told: list[Diagnostic]
) -> None:
    """Refuse nodes of another HyperNode of the submission; say who leaves an older one."""
    others: dict[str, list[str]] = {}
    for name in sorted(held):
        other = nodes[name].get(spec.key, spec.name)
        if other != spec.name:
            others.setdefault(other, []).append(name)
    for other, names in others.items():
        if other in kept:
            numbers: dict[str, Any] = {"member": names[0], "other": other}
            raise Rejected([_finding(spec, "HYPERNODE_TWO_PARENTS", **numbers).as_problem()])
        told.append(_finding(spec, "HYPERNODE_MOVED", count=len(names), other=other))


def _keep_level(spec: HyperNodeSpec, user: User | None, reason: str) -> bool:
    """Let the topology have the level of the tier. Returns whether it is new.

    Raises:
        Rejected: the tier is called otherwise already.
    """
    row = Topology.objects.filter(name=TOPOLOGY).first()
    levels = list(row.levels.values_list("node_label", flat=True)) if row else []
    if spec.key in levels:
        return False
    for key in levels:
        tier, name = tier_of(key) or (0, "")
        if tier == spec.tier:
            called = name or f"tier-{spec.tier}"
            finding = _finding(spec, "HYPERNODE_TIER_NAMED", tier=spec.tier, name=called)
            raise Rejected([finding.as_problem()])
    # With the host as its last level a topology may get others later (K60).
    wanted = TopologySpec(TOPOLOGY, outermost_first({*levels, spec.key, HOSTNAME}))
    queues.save_topology(wanted, actor=user, reason=reason)
    return True


def _finding(spec: HyperNodeSpec, code: str, **numbers: Any) -> Diagnostic:
    return Diagnostic(code, _subject(spec), "spec.members", numbers)


def _subject(spec: HyperNodeSpec) -> str:
    return f"{KIND}/{spec.name}"
