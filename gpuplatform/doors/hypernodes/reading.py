"""HyperNode documents to specs, and what makes several of them no tree."""

import re
from collections.abc import Iterator, Mapping

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import Fields
from gpuplatform.common.manifests import Document, Reading
from gpuplatform.doors.hypernodes.specs import GROUP, KIND, NODE, HyperNodeSpec, Member
from queues.labels import is_label_value
from queues.manifests.reading import open_document

MOST_TIER = 64
MOST_REPEATS = 3  # of a pattern, none within another: else a match may take for ever
REPEATS, REPEATED_GROUP = re.compile(r"[*+{]"), re.compile(r"\)[*+{]")
LONGEST = 253


def reads(document: Document) -> bool:
    """Return whether the document is a HyperNode."""
    group = document.api_version.rpartition("/")[0]
    return (group, document.kind) == (GROUP, KIND)


def read_hypernode(document: Document) -> Reading:
    """Read one HyperNode; what it holds is resolved where it is kept."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec", required=True)
    tier = spec.integer("tier", minimum=1, maximum=MOST_TIER, required=True)
    name = spec.text("tierName")
    if not is_label_value(name):
        spec.report("BAD_VALUE", "tierName", value=name[:64], allowed="a label value")
    members = tuple(_member(row) for row in spec.children("members", required=True))
    if not members and "members" in spec:
        spec.report("REQUIRED", "members")
    spec.close()
    fields.close()
    reading.specs.append(HyperNodeSpec(document.name, tier or 1, name, members))
    return reading


def _member(row: Fields) -> Member:
    kind = row.choice("type", (NODE, KIND), NODE)
    selector = row.child("selector", required=True)
    exact = selector.child("exactMatch").text("name")
    pattern = selector.child("regexMatch").text("pattern")
    labels = _labels(selector)
    if cause := _unusable(pattern):
        selector.report("HYPERNODE_PATTERN", "regexMatch.pattern", cause=cause)
    chosen = [bool(exact), bool(pattern), bool(labels)]
    if chosen.count(True) != 1 or (labels and kind != NODE):
        selector.report("HYPERNODE_SELECTOR")
    for part in (selector.child("exactMatch"), selector.child("regexMatch"), selector, row):
        part.close()
    return Member(kind, row.path, exact, "" if cause else pattern, labels or None)


def _labels(selector: Fields) -> dict[str, str]:
    match = selector.child("labelMatch")
    found = match.labels("matchLabels")
    match.not_honoured("matchExpressions")
    match.close()
    return found


def _unusable(pattern: str) -> str:
    """Return why a pattern is not used, "" where it is."""
    if not pattern:
        return ""
    if len(pattern) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    if len(REPEATS.findall(pattern)) > MOST_REPEATS or REPEATED_GROUP.search(pattern):
        return f"it repeats a group, or more than {MOST_REPEATS} times"
    return ""


# ---- several of them ---------------------------------------------------------------------------
def check_tree(specs: Mapping[str, HyperNodeSpec]) -> Iterator[tuple[str, Diagnostic]]:
    """Yield where HyperNodes of a submission make no tree (``placement.md`` 2.4), by name."""
    parents: dict[tuple[str, str], str] = {}
    for name, spec in sorted(specs.items()):
        for member in (one for one in spec.members if one.exact):
            parent = parents.setdefault((member.kind, member.exact), name)
            if parent != name:
                numbers = {"member": member.exact[:64], "other": parent[:64]}
                yield name, Diagnostic("HYPERNODE_TWO_PARENTS", "", member.path, numbers)
            child = specs.get(member.exact) if member.kind == KIND else None
            if child is not None and child.tier >= spec.tier:
                told: dict[str, str | int] = {"member": child.name[:64], "tier": child.tier}
                told["own"] = spec.tier
                yield name, Diagnostic("HYPERNODE_TIER", "", member.path, told)
