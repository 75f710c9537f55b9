"""Which workloads have changed between two marks of the page stream (``gpuplatform.common.live``).

Every step of a workload is a line of its story; edits are rows of changes; and a cycle that holds
somebody may have said anew why, and at which place, anybody waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from gpuplatform.common.models import Change
from scheduling.models import Cycle, WorkloadEvent

MOST = 1_000  # changes that are told one by one
# Rows before the mark that are looked at again: a lower number may be committed after a higher.
OVERLAP = 200
FEEDS = ("edit", "story", "cycle")


class MarkTooOld(Exception):  # as Rejected
    """So much has changed since, or it is so long ago, that who asks should list again."""


@dataclass(frozen=True, slots=True)
class Changed:
    """``uids`` have changed, ``new`` of them were submitted; ``waiting``: why anybody waits.

    ``late``: may have changed by rows that were committed late; most of them are told already.
    """

    uids: frozenset[UUID]
    new: frozenset[UUID]
    waiting: bool
    late: frozenset[UUID] = frozenset()


def changed_between(since: Mapping[str, int], until: Mapping[str, int]) -> Changed:
    """Return what has changed after ``since``, up to ``until``; 5 queries.

    Raises:
        MarkTooOld: more than ``MOST`` changes, cycles that are kept no longer, or a mark that this
            database has not given.
    """
    oldest = Cycle.objects.order_by("id").values_list("id", flat=True).first() or 0
    if any(since[name] > until[name] for name in FEEDS) or 0 < since["cycle"] < oldest - 1:
        raise MarkTooOld
    lines = WorkloadEvent.objects.filter(id__gt=since["story"], id__lte=until["story"])
    told = list(lines.values_list("workload_id", "kind")[: MOST + 1])
    edits = Change.objects.filter(
        id__gt=since["edit"], id__lte=until["edit"], topic="workload"
    ).exclude(key="")
    keys = list(edits.values_list("key", flat=True)[: MOST + 1])
    if len(told) > MOST or len(keys) > MOST:
        raise MarkTooOld
    cycles = Cycle.objects.filter(id__gt=since["cycle"], id__lte=until["cycle"], held__gt=0)
    uids = frozenset(uid for uid, _kind in told) | {
        uid for key in keys for one in key.split(",") if (uid := _uid(one))
    }
    new = frozenset(uid for uid, kind in told if kind == "submitted")
    before = WorkloadEvent.objects.filter(
        id__gt=since["story"] - OVERLAP, id__lte=since["story"]
    ).values_list("workload_id", flat=True)
    return Changed(uids, new, cycles.exists(), frozenset(before) - uids)


def _uid(key: str) -> UUID | None:
    try:
        return UUID(key)
    except ValueError:
        return None
