"""Documents to plans: which room reads each, what it read, and in which order it is to be kept.

What cannot be read refuses the whole submission, before anything is written.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from finops.manifests import read_litellm, read_opencost
from finops.price_lists import KIND as PRICE_LIST
from finops.price_lists import read_price_list
from finops.specs import PriceSpec
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import UNREADABLE
from gpuplatform.common.likeness import nearest_name
from gpuplatform.common.manifests import Document, load_documents
from gpuplatform.common.problems import Rejected
from gpuplatform.doors.hypernodes.reading import check_tree, read_hypernode
from gpuplatform.doors.hypernodes.reading import reads as is_hypernode
from gpuplatform.doors.hypernodes.specs import GROUP, KIND, HyperNodeSpec
from gpuplatform.doors.naming import with_names
from queues.manifests import READERS, reader_for
from queues.manifests.own import VERSION as OWN
from queues.manifests.volcano import parents_of, read_queue
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorSpec,
    LocalQueueSpec,
    NamespaceSpec,
    PriorityClassSpec,
    TeamSpec,
    TopologySpec,
)
from scheduling import manifests as work
from scheduling.specs import CheckSpec, NodeSpec, WorkloadSpec

# The order in which objects are kept: each may need those before it.
RANKS: tuple[type, ...] = (
    TeamSpec,
    NamespaceSpec,
    PriorityClassSpec,
    TopologySpec,
    FlavorSpec,
    NodeSpec,
    HyperNodeSpec,
    CohortSpec,
    CheckSpec,
    ClusterQueueSpec,
    LocalQueueSpec,
    CheckSpec,
    PriceSpec,
    WorkloadSpec,
)
LITELLM, OPENCOST = "LiteLLMConfiguration", "OpenCostValues"


@dataclass(slots=True)
class Item:
    """One document and what its room read in it.

    ``by_weight`` names the queues whose nominal quota the system works out.
    """

    document: Document
    kind: str
    specs: list[Any] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    member_of: str = ""
    by_weight: set[str] = field(default_factory=set)

    @property
    def rank(self) -> int:
        """Return the place in the order of keeping: that of its last, weightiest spec."""
        kinds = [RANKS.index(type(spec)) for spec in self.specs]
        return max(kinds, default=len(RANKS))

    @property
    def order(self) -> tuple[int, int]:
        """Return the place in the order of keeping; HyperNodes of lower tiers come first."""
        tiers = [spec.tier for spec in self.specs if isinstance(spec, HyperNodeSpec)]
        return self.rank, max(tiers, default=0)

    @property
    def name(self) -> str:
        """Return the object's name with its namespace where it has one."""
        return self.document.subject.partition("/")[2] or self.kind


def read_submission(text: str | bytes) -> list[Item]:
    """Return an item per document, in the order of the submission.

    Raises:
        Rejected: something cannot be read at all; every problem has its document and path.
    """
    documents, names = with_names(load_documents(text))
    parts = {
        part.document.index: part
        for part in work.read([document for document in documents if work.reads(document)])
    }
    parents = parents_of(documents)
    items = []
    for document in documents:
        part = parts.get(document.index)
        if part is not None:
            items.append(
                Item(document, document.kind, part.specs, part.diagnostics, part.member_of)
            )
        else:
            items.append(_read(document, parents))
    for item in items:
        item.diagnostics += [names[n] for n in (item.document.index,) if n in names]
    _refuse_unreadable(items)
    _check_hypernodes(items)
    return items


def _read(document: Document, parents: frozenset[str]) -> Item:
    reader = read_hypernode if is_hypernode(document) else reader_for(document)
    if reader is read_queue:
        reading = read_queue(document, parents)
    elif reader is not None:
        reading = reader(document)
    elif (document.api_version, document.kind) == (OWN, PRICE_LIST):
        reading = read_price_list(document)
    else:
        return _read_prices(document)
    return Item(document, document.kind, reading.specs, reading.diagnostics)


def _read_prices(document: Document) -> Item:
    """Read what has no kind and is known by its keys; anything else is no kind of ours."""
    body = document.body
    values = body.get("opencost")
    if not document.kind and "model_list" in body:
        prices, kind = read_litellm(body), LITELLM
    elif not document.kind and isinstance(values, dict) and "customPricing" in values:
        prices, kind = read_opencost(body), OPENCOST
    else:
        numbers = {"kind": document.kind or "?", "api_version": document.api_version or "?"}
        numbers |= _nearest_kind(document.kind)
        unknown = Diagnostic("UNKNOWN_KIND", document.subject, "kind", numbers)
        return Item(document, document.kind, [], [unknown])
    named = replace(document, kind=kind, name=kind)
    return Item(named, kind, list(prices.specs), list(prices.diagnostics))


def _check_hypernodes(items: list[Item]) -> None:
    """Say of each HyperNode of the submission where it is no part of a tree."""
    by_name = {
        spec.name: (spec, item)
        for item in items
        for spec in item.specs
        if isinstance(spec, HyperNodeSpec)
    }
    for name, finding in check_tree({name: spec for name, (spec, _) in by_name.items()}):
        item = by_name[name][1]
        item.diagnostics.append(replace(finding, subject=item.document.subject))


def _nearest_kind(kind: str) -> dict[str, str]:
    """Return the kind that was meant, with its API group: that may be what is wrong."""
    groups: dict[str, list[str]] = {}
    own = (OWN.rpartition("/")[0], PRICE_LIST)
    for group, name in sorted({*READERS, *work.READERS, *work.POD_GROUPS, own, (GROUP, KIND)}):
        groups.setdefault(name, []).append(group or "v1")
    nearest = nearest_name(kind, groups) if kind else ""
    return {"nearest": f"{nearest} ({', '.join(groups[nearest])})"} if nearest else {}


def _refuse_unreadable(items: list[Item]) -> None:
    codes = UNREADABLE | {"UNKNOWN_KIND"}
    problems = [
        diagnostic.as_problem(item.document.path)
        for item in items
        for diagnostic in item.diagnostics
        if diagnostic.code in codes
    ]
    if problems:
        raise Rejected(problems)
