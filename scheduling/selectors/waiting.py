"""Why pending work waits, in words: what is in the way, what would help, who holds it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from gpuplatform.common import reasons
from queues.access import Actor
from scheduling.engine.machines import GPU
from scheduling.engine.plan import can_never_start
from scheduling.engine.terms import BlockerCode
from scheduling.models import Workload
from scheduling.selectors.discretion import Discretion
from scheduling.selectors.pages import Pages, Part

BEYOND_NOMINAL = frozenset(
    {BlockerCode.BORROW_LIMIT, BlockerCode.LENDER_BUSY, BlockerCode.COHORT_EXHAUSTED}
)
ABOUT_TURNS = frozenset(
    {BlockerCode.NOMINAL_FIRST, BlockerCode.LARGER_SHARE, BlockerCode.USED_MORE}
)
ABOUT_QUOTA = frozenset(
    {
        *(BlockerCode.QUOTA_NOMINAL, BlockerCode.BEHIND_IN_QUEUE, BlockerCode.FLAVOR_TOO_SMALL),
        *BEYOND_NOMINAL,
        *ABOUT_TURNS,
    }
)
ABOUT_NODES = frozenset(
    {BlockerCode.GANG_NO_FIT, BlockerCode.FRAGMENTED, BlockerCode.TOPOLOGY_NO_DOMAIN}
)
PASSED_BY = frozenset(
    {
        *(BlockerCode.BEHIND_IN_QUEUE, BlockerCode.BACKOFF, BlockerCode.BUDGET_BLOCK),
        *(BlockerCode.ADMISSION_CHECK, BlockerCode.GATED, BlockerCode.QUEUE_STOPPED),
    }
)


@dataclass(frozen=True, slots=True)
class BlockerLine:
    """One thing in the way, in words. Amounts are in canonical units of ``resource``."""

    code: str
    sentence: str
    next_step: str
    severity: str
    resource: str = ""
    needed: int | None = None
    available: int | None = None
    where: str = ""
    page: str = ""  # of the queue, the cohort or the nodes that it is about
    holders: tuple[Part, ...] = ()

    @property
    def missing(self) -> int:
        """Return how much is lacking."""
        return max(0, (self.needed or 0) - max(0, self.available or 0))

    @property
    def free_percent(self) -> float:
        """Return what is there in percent of what is asked."""
        return (
            100.0 * max(0, min(self.available or 0, self.needed or 0)) / max(self.needed or 0, 1)
        )

    @property
    def missing_percent(self) -> float:
        """Return what is lacking in percent of what is asked."""
        return 100.0 - self.free_percent

    @property
    def is_about_nodes(self) -> bool:
        """Return whether room on nodes is lacking, not quota."""
        return self.code in ABOUT_NODES

    @property
    def has_numbers(self) -> bool:
        """Return whether a bar of asked against available says something."""
        return bool(self.needed) and self.available is not None


def blocker_lines(workload: Workload, discretion: Discretion) -> list[BlockerLine]:
    """Return in words why a workload waits, in order, as far as its reader may know."""
    return [_blocker_line(blocker, discretion) for blocker in discretion.blockers(workload)]


def deciding(workload: Workload, lines: Sequence[BlockerLine]) -> BlockerLine | None:
    """Return the blocker to quote first: who may borrow is not stopped by the nominal quota."""
    first = next(iter(lines), None)
    if first is None or first.code != BlockerCode.QUOTA_NOMINAL:
        return first
    facts = [blocker.get("facts") or {} for blocker in workload.blockers]
    for fact, line in zip(facts, lines, strict=True):
        same = line.resource == first.resource and fact.get("flavor") == facts[0].get("flavor")
        if line.code in BEYOND_NOMINAL and same and fact.get("limit") != 0:
            return line
    return first


def is_impossible(workload: Workload) -> bool:
    """Return whether no departure of others can ever let the workload start."""
    codes = [str(blocker.get("code")) for blocker in workload.blockers]
    return can_never_start(workload.pending_reason, codes)


def _blocker_line(blocker: Mapping[str, Any], discretion: Discretion) -> BlockerLine:
    facts = blocker.get("facts") or {}
    numbers = {**facts, **{k: v for k, v in blocker.items() if k != "facts" and v is not None}}
    code = str(blocker["code"])
    worded = str(facts.get("sub_code", "")) if code == BlockerCode.IMPOSSIBLE else code
    worded = worded if worded in reasons.REGISTRY else code
    return BlockerLine(
        code=code,
        sentence=reasons.sentence(worded, numbers),
        next_step=reasons.next_step(worded, numbers),
        severity=reasons.severity(worded),
        resource=str(blocker.get("resource") or GPU),
        needed=blocker.get("needed"),
        available=blocker.get("available"),
        where=str(blocker.get("where") or ""),
        page=_page_of(code, str(blocker.get("where") or ""), discretion),
        holders=_holders(str(facts.get("holders") or ""), discretion),
    )


def _page_of(code: str, where: str, discretion: Discretion) -> str:
    if code in ABOUT_NODES:
        return reverse("nodes")
    return discretion.pages.of_lender(where) if code in ABOUT_QUOTA else ""


def _holders(text: str, discretion: Discretion) -> tuple[Part, ...]:
    """Return who holds the quota: the engine's ``cq-a: 64, cq-b: 96``, each with its page."""
    pairs = (part.rpartition(": ") for part in text.split(", ") if part)
    return tuple(
        Part(name, int(amount), discretion.pages.of_queue(name)) for name, _, amount in pairs
    )


@dataclass(frozen=True, slots=True)
class Waiting:
    """One pending workload, and what really blocks it."""

    workload: Workload
    first: BlockerLine | None


def waiting_rows(
    rows: Iterable[Workload], actor: Actor, pages: Pages | None = None
) -> list[Waiting]:
    """Return pending workloads, each with the blocker that decides, in words."""
    discretion = Discretion(actor, pages)
    return [Waiting(row, deciding(row, blocker_lines(row, discretion))) for row in rows]
