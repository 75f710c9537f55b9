"""One act on many workloads: each by the service of a single one, each with its own answer."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.problems import Rejected
from queues.models import User
from scheduling import switching
from scheduling.models import Workload
from scheduling.services import cancel_workload

MOST = 200  # workloads; each takes a transaction, and somebody waits for all of them


class Act(StrEnum):
    """What may be done to many workloads at once."""

    DEACTIVATE = "deactivate"
    REACTIVATE = "reactivate"
    CANCEL = "cancel"


WORDS: Mapping[Act, str | Promise] = {
    Act.DEACTIVATE: _("Deactivate"),
    Act.REACTIVATE: _("Reactivate"),
    Act.CANCEL: _("Cancel"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one workload: done, so already, or why not."""

    workload: Workload
    done: bool
    words: str = ""

    @property
    def is_refused(self) -> bool:
        """Return whether it could not be done."""
        return bool(self.words)


def act_on(
    rows: Iterable[Workload],
    act: Act,
    *,
    actor: User | None,
    reason: str = "",
    keep: bool = True,
) -> list[Answer]:
    """Do it to each that allows it; one that does not leaves the others alone.

    Each is a transaction of its own, as if asked for by itself. ``keep`` False: only tell what
    would become of each.
    """
    return [_one(row, act, actor, reason, keep=keep) for row in rows]


def _one(row: Workload, act: Act, actor: User | None, reason: str, *, keep: bool) -> Answer:
    try:
        with transaction.atomic():
            after = _DO[act](row, actor, reason)
            transaction.set_rollback(not keep)
    except Rejected as error:
        return Answer(row, False, " ".join(problem.message for problem in error.problems))
    return Answer(row, after.version != row.version)


def _set(active: bool) -> Callable[[Workload, User | None, str], Workload]:
    return lambda row, actor, reason: switching.set_active(
        row.uid, active, actor=actor, reason=reason
    )


_DO: Mapping[Act, Callable[[Workload, User | None, str], Workload]] = {
    Act.DEACTIVATE: _set(active=False),
    Act.REACTIVATE: _set(active=True),
    Act.CANCEL: lambda row, actor, reason: cancel_workload(row.uid, actor=actor, reason=reason),
}
