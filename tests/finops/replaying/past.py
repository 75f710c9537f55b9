"""A week of past work as rows: admitted, run and metered as the engine would have done it."""

from datetime import UTC, datetime, timedelta

from queues.models import Team
from scheduling.models import Admission, CapacityInterval, QuotaInterval, UsageInterval
from tests.finops.rows import FLAVOR, GPU, price
from tests.scheduling.loop import world

MONDAY = datetime(2026, 6, 1, tzinfo=UTC)
NEXT_MONDAY = MONDAY + timedelta(days=7)
HOUR = timedelta(hours=1)


def platform():
    """Two nodes with 4 GPUs each, 4 for Datos and 4 for IA, who lend to each other."""
    world.nodes(2, gpus=4)
    for name in ("datos", "ia"):
        world.queue(name, 4, cohort="llm", reclaim_within_cohort="Never")
        QuotaInterval.objects.create(
            cluster_queue=f"cq-{name}",
            cohort="llm",
            flavor=FLAVOR,
            resource=GPU,
            nominal=4,
            started_at=MONDAY,
        )
    for number in (1, 2):
        CapacityInterval.objects.create(
            node=f"h100-node-{number:02}",
            flavor=FLAVOR,
            resource=GPU,
            amount=4,
            started_at=MONDAY,
        )
    price("1.40", valid_from=MONDAY - timedelta(days=30))


def ran(team, name, at, hours, *, gpus=1, pods=1, waited=0, **columns):
    """Let a gang have come ``at`` hours into the week, waited and run; it is metered."""
    came = MONDAY + at * HOUR
    start, end = came + waited * HOUR, came + (waited + hours) * HOUR
    row = world.work(
        team,
        name,
        gpus=gpus,
        pods=pods,
        created_at=came,
        started_at=start,
        finished_at=end,
        status="finished",
        outcome="succeeded",
        **columns,
    )
    held = Admission.objects.create(
        workload=row,
        cluster_queue=f"cq-{team}",
        admitted_at=start,
        started_at=start,
        released_at=end,
    )
    UsageInterval.objects.create(
        admission=held,
        workload=row,
        team=Team.objects.get(name=team),
        cluster_queue=f"cq-{team}",
        namespace=row.namespace,
        flavor=FLAVOR,
        resource=GPU,
        amount=gpus * pods,
        holding="nominal",
        started_at=start,
        ended_at=end,
    )
    return row


def busy_week():
    """Datos runs 4 GPUs, IA comes with 8 while they run, and waits for 10 hours."""
    return (
        ran("datos", "own", 1, 20, gpus=4),
        ran("datos", "small", 35, 5, gpus=2),
        ran("ia", "large", 11, 10, gpus=4, pods=2, waited=10),
    )
