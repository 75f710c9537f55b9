"""Whose a piece of use or iron is, and where its cost first lands (FORMAT.md 2)."""

from collections import defaultdict
from typing import NamedTuple

from finops.allocation import places
from finops.allocation.facts import (
    Facts,
    Instant,
    Iron,
    Mapping,
    NamespaceBilling,
    SharedItem,
    Texts,
    Usage,
)
from finops.allocation.places import Account, Place, ServingPool, SharedPool
from finops.allocation.timeline import InForce, span

_Entries = tuple[tuple[str, str], ...]


class Marks(NamedTuple):
    """All that ownership is told by; ``belongs_to_none`` is OpenCost's row without a pod."""

    cluster: str
    queue: str = ""
    namespace: str = ""
    labels: _Entries = ()
    annotations: _Entries = ()
    is_unmounted: bool = False


def marks_of_usage(use: Usage) -> Marks:
    """Return the marks of metered work."""
    return Marks(
        use.cluster,
        use.queue or "",
        use.namespace or "",
        _entries(use.labels),
        _entries(use.annotations),
    )


def marks_of_iron(row: Iron) -> Marks:
    """Return the marks of a row of OpenCost; ``__unallocated__`` counts as no namespace."""
    namespace = row.namespace or ""
    return Marks(
        row.cluster,
        "",
        "" if namespace == places.UNALLOCATED_NAMESPACE else namespace,
        _entries(row.labels),
        _entries(row.annotations),
        is_unmounted=namespace == places.UNMOUNTED_NAMESPACE,
    )


def _entries(texts: Texts) -> _Entries:
    return tuple(sorted(texts.items())) if texts else ()


class Owners:
    """Answers of the mappings, the modes of namespaces and the shared namespaces."""

    def __init__(self, facts: Facts) -> None:
        self._mappings: InForce[tuple[str, str, str, str], Mapping] = InForce(
            ((row.kind, row.cluster or "", row.key or "", row.value), row)
            for row in facts.mappings
        )
        self._modes = InForce(((n.cluster or "", n.namespace), n) for n in facts.namespaces)
        self._shared: dict[str, list[SharedItem]] = defaultdict(list)
        for item in sorted(facts.shared, key=lambda item: item.id):
            if item.namespace is not None:
                self._shared[item.namespace].append(item)
        self._owners: dict[tuple[Marks, Instant], Account] = {}
        self._landings: dict[tuple[Marks, Instant], Place] = {}

    def owner(self, marks: Marks, at: Instant) -> Account:
        """Return the owner, or the bucket of what has none."""
        known = self._owners.get((marks, at))
        if known is None:
            known = self._owners[marks, at] = self._find_owner(marks, at)
        return known

    def landing(self, marks: Marks, at: Instant) -> Place:
        """Return where the cost first lands: shared pool, serving pool or owner."""
        known = self._landings.get((marks, at))
        if known is None:
            known = self._landings[marks, at] = self._find_landing(marks, at)
        return known

    def mode(self, cluster: str, namespace: str, at: Instant) -> NamespaceBilling:
        """Return how a namespace is billed."""
        found = self._modes.at((cluster, namespace), at) or self._modes.at(("", namespace), at)
        return found.mode if found else "direct"

    def of_queue(self, cluster: str, queue: str, at: Instant) -> Account:
        """Return the account of a queue."""
        return self._team("queue", cluster, "", queue, at) or places.UNALLOCATED_QUEUE

    def of_namespace(self, cluster: str, namespace: str, at: Instant) -> Account:
        """Return the account of a namespace by its mapping alone."""
        found = self._team("namespace", cluster, "", namespace, at)
        return found or places.UNALLOCATED_NAMESPACE_BUCKET

    def of_tokens(self, team_id: str | None, at: Instant) -> Account:
        """Return the account of a LiteLLM team; an absent or empty one is nobody."""
        if not team_id:
            return places.UNALLOCATED_TOKENS
        return self._team("litellm_team", "", "", team_id, at) or places.UNKNOWN_TEAM

    def _find_owner(self, marks: Marks, at: Instant) -> Account:
        if marks.is_unmounted:
            return places.UNMOUNTED_STORAGE
        asked = [
            ("queue", "", marks.queue),
            *(("annotation", key, value) for key, value in marks.annotations),
            *(("label", key, value) for key, value in marks.labels),
            ("namespace", "", marks.namespace),
        ]
        for kind, key, value in asked:
            found = self._team(kind, marks.cluster, key, value, at)
            if found:
                return found
        if marks.namespace:
            return places.UNALLOCATED_NAMESPACE_BUCKET
        return places.UNALLOCATED_QUEUE if marks.queue else places.UNALLOCATED_LABEL

    def _team(self, kind: str, cluster: str, key: str, value: str, at: Instant) -> Account | None:
        """Ask the mapping that names the cluster, then the one that does not."""
        for place in dict.fromkeys((cluster, "")):
            found = self._mappings.at((kind, place, key, value), at)
            if found:
                return places.team(found.team)
        return None

    def _find_landing(self, marks: Marks, at: Instant) -> Place:
        for item in self._shared.get(marks.namespace, ()):
            start, end = span(item)
            if item.cluster in {None, marks.cluster} and start <= at < end:
                return SharedPool(item.id)
        owner = self.owner(marks, at)
        if marks.namespace and self.mode(marks.cluster, marks.namespace, at) == "serving_shared":
            return ServingPool(marks.cluster, marks.namespace, owner)
        return owner
