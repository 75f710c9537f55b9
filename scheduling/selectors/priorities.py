"""Named priorities, and the work that has them now."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from queues.access import Actor, visible
from queues.choices import PriorityKind
from queues.models import PriorityClass
from scheduling.engine.terms import Status
from scheduling.models import Workload

PRIORITY_COLUMNS = (
    *("name", "kind", "value", "global_default", "description"),
    *("waiting", "running", "gpus"),
)
HOLDING = (Status.ADMITTED.value, Status.RUNNING.value)


@dataclass(frozen=True, slots=True)
class PriorityRow:
    """One class; ``gpus`` are held by the work of it that the reader may see.

    None: classes of pods give a number and are not remembered by name.
    """

    row: PriorityClass
    waiting: int | None
    running: int | None
    gpus: int | None

    def cells(self) -> dict[str, Any]:
        """Return the columns of a file."""
        names = ("name", "kind", "value", "global_default", "description")
        counts = {name: getattr(self, name) for name in ("waiting", "running", "gpus")}
        return {name: getattr(self.row, name) for name in names} | counts


def priority_rows(actor: Actor) -> list[PriorityRow]:
    """Return all classes, highest first. Two queries, whatever the rows."""
    held = Q(status__in=HOLDING)
    work = visible(Workload.objects.exclude(priority_class=""), actor)
    counted = (
        work.order_by()
        .values("priority_class")
        .annotate(
            waiting=Count("pk", filter=Q(status=Status.PENDING.value)),
            running=Count("pk", filter=held),
            held=Coalesce(Sum("gpus", filter=held), 0),
        )
    )
    found = {one["priority_class"]: one for one in counted}
    nothing = {"waiting": 0, "running": 0, "held": 0}
    rows = []
    for row in PriorityClass.objects.all():
        if row.kind == PriorityKind.WORKLOAD:
            told = found.get(row.name, nothing)
            rows.append(PriorityRow(row, told["waiting"], told["running"], told["held"]))
        else:
            rows.append(PriorityRow(row, None, None, None))
    return rows
