"""What a reader may learn about others from why work waits: amounts, never foreign names.

The engine names queues and workloads in the facts of blockers; a queue or workload that is 404
for the reader is told as "other teams". Pages, REST and files all read blockers through here.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any
from uuid import UUID

from django.utils.translation import gettext

from queues.access import Actor, visible
from queues.models import ClusterQueue
from scheduling.checks import MANUAL
from scheduling.engine.terms import BlockerCode, CheckVerdict, PendingReason, Status
from scheduling.models import AdmissionCheck, CheckState, Workload
from scheduling.selectors.pages import Pages

QUEUE_FACTS = ("holders",)  # "cq-a: 64, cq-b: 96"
WORKLOAD_FACTS = ("releasing", "claimants", "reserved_for", "head", "first")  # ids, with commas
NAME_FACTS = ("rival",)  # one queue, or the cohort that it belongs to

Blocker = Mapping[str, Any]


class Discretion:
    """One reader's view of blockers: four queries at most, none where nobody is named."""

    def __init__(self, actor: Actor | None, pages: Pages | None = None) -> None:
        self._actor = actor or Actor(None)
        self._pages = pages

    def blockers(self, workload: Workload) -> list[dict[str, Any]]:
        """Return why the workload waits, foreign names left out.

        Once quota is kept for it no cycle judges it: what it waits for are its checks.
        """
        if workload.pending_reason == PendingReason.UNSATISFIED_CHECKS:
            return [self._asked(name) for name in self._unanswered.get(workload.pk, ())]
        return [self._blocker(blocker) for blocker in workload.blockers]

    def _blocker(self, blocker: Blocker) -> dict[str, Any]:
        facts = dict(blocker.get("facts") or {})
        if self._actor.sees_everything:
            return {**blocker, "facts": facts}
        for name in QUEUE_FACTS:
            if facts.get(name):
                facts[name] = _told(_amounts(str(facts[name])), self._queues)
        for name in WORKLOAD_FACTS:
            if facts.get(name):
                facts[name] = _named(str(facts[name]).split(", "), self._workloads)
        for name in NAME_FACTS:
            if facts.get(name) and facts[name] not in self._queues:
                facts[name] = gettext("another team")
        return {**blocker, "facts": facts}

    def _asked(self, check: str) -> dict[str, Any]:
        facts = {"cause": "Manual"} if check in self._manual else {}
        return {"code": BlockerCode.ADMISSION_CHECK.value, "where": check, "facts": facts}

    @cached_property
    def _unanswered(self) -> dict[UUID, list[str]]:
        """Return the checks that have not agreed, by workload that waits for them."""
        rows = CheckState.objects.filter(
            workload__pending_reason=PendingReason.UNSATISFIED_CHECKS.value,
            state=CheckVerdict.PENDING.value,
        )
        found: dict[UUID, list[str]] = {}
        for workload, name in rows.values_list("workload_id", "check_name"):
            found.setdefault(workload, []).append(name)
        return found

    @cached_property
    def _manual(self) -> frozenset[str]:
        rows = AdmissionCheck.objects.filter(kind=MANUAL)
        return frozenset(rows.values_list("name", flat=True))

    @cached_property
    def pages(self) -> Pages:
        """Return where names lead for this reader."""
        return self._pages or Pages(self._actor)

    @cached_property
    def _queues(self) -> frozenset[str]:
        rows = visible(ClusterQueue.objects.all(), self._actor)
        return frozenset(rows.values_list("name", flat=True))

    @cached_property
    def _workloads(self) -> frozenset[str]:
        rows = visible(Workload.objects.exclude(status=Status.FINISHED.value), self._actor)
        return frozenset(str(uid) for uid in rows.values_list("uid", flat=True))


def _amounts(text: str) -> list[tuple[str, int]]:
    pairs = (part.rpartition(": ") for part in text.split(", "))
    return [(name, int(amount)) for name, _, amount in pairs]


def _told(amounts: Iterable[tuple[str, int]], seen: frozenset[str]) -> str:
    """Return amounts by name; what belongs to others is one sum."""
    parts, others = [], 0
    for name, amount in amounts:
        if name in seen:
            parts.append(f"{name}: {amount}")
        else:
            others += amount
    parts += [f"{gettext('other teams')}: {others}"] if others else []
    return ", ".join(parts)


def _named(names: list[str], seen: frozenset[str]) -> str:
    """Return the names that are seen, and how many others there are."""
    known = [name for name in names if name in seen]
    others = len(names) - len(known)
    return ", ".join([*known, *([f"{gettext('other teams')}: {others}"] if others else [])])
