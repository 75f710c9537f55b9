"""Rows that the money tests stand on: the articles' month, metered to the hour."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from finops.models import CostRow, Coverage, Price, Source, TokenRow
from finops.models.sources import PLANES
from queues.models import ClusterQueue, Cohort, ResourceFlavor, Team
from scheduling.models import (
    Admission,
    CapacityInterval,
    QuotaInterval,
    UsageInterval,
    Workload,
)

GPU = "nvidia.com/gpu"
FLAVOR = "h100-sxm"
JUNE = datetime(2026, 6, 1, tzinfo=UTC)
JULY = datetime(2026, 7, 1, tzinfo=UTC)
# The four GPUs of one node, hour by hour of June: (team, GPUs, from hour, hours).
# Datos runs a gang of 4 for 270 h, half of it borrowed; IA and Plataforma use what they own.
USES = (
    ("datos", 4, 0, 270),
    ("ia", 1, 270, 432),
    ("plataforma", 1, 270, 252),
)
NOMINALS = {"datos": 2, "ia": 1, "plataforma": 1}


def june():
    """Write the articles' month; return its teams by name."""
    teams = {name: make_team(name) for name in NOMINALS}
    price("1.40", valid_from=JUNE - timedelta(days=30))
    CapacityInterval.objects.create(
        node="h100-node-01", flavor=FLAVOR, resource=GPU, amount=4, started_at=JUNE
    )
    for name, nominal in NOMINALS.items():
        QuotaInterval.objects.create(
            cluster_queue=f"cq-{name}",
            cohort="llm-platform",
            flavor=FLAVOR,
            resource=GPU,
            nominal=nominal,
            started_at=JUNE,
        )
    for name, gpus, first, hours in USES:
        start = JUNE + timedelta(hours=first)
        use(teams[name], gpus, start, start + timedelta(hours=hours))
    return teams


def make_team(name):
    team, _ = Team.objects.get_or_create(name=name, defaults={"display_name": name.title()})
    cohort, _ = Cohort.objects.get_or_create(name="llm-platform")
    ClusterQueue.objects.get_or_create(
        name=f"cq-{name}", defaults={"team": team, "cohort": cohort}
    )
    return team


def flavor(name=FLAVOR):
    """Make a flavor: a GPU-hour is priced only for one that is there."""
    return ResourceFlavor.objects.get_or_create(name=name)[0]


def price(amount, *, subject=FLAVOR, valid_from, valid_to=None, unit="gpu_hour", pk=None):
    return Price.objects.create(
        pk=pk,
        unit=unit,
        subject=subject,
        amount=Decimal(amount),
        valid_from=valid_from,
        valid_to=valid_to,
        created_at=valid_from,  # known when it began, so that no draft is older
    )


def use(team, gpus, start, end, *, queue=None, namespace="", flavor=FLAVOR):
    """Meter one workload: what is beyond its team's nominal is borrowed from the others."""
    workload = Workload.objects.create(
        namespace=namespace or "ns",
        name=f"w{Workload.objects.count()}",
        team=team,
        gpus=gpus,
    )
    cluster_queue = f"cq-{team.name}" if queue is None else queue
    admission = Admission.objects.create(
        workload=workload, cluster_queue=cluster_queue, admitted_at=start
    )
    own = min(gpus, NOMINALS.get(team.name, gpus)) if team else gpus
    grounds = [("nominal", "", own)] if cluster_queue else [("unmanaged", "", gpus)]
    lenders = [name for name in NOMINALS if team is None or name != team.name]
    if cluster_queue:
        grounds += [("borrowed", f"cq-{name}", 1) for name in lenders[: gpus - own]]
    for holding, lender, amount in grounds:
        UsageInterval.objects.create(
            admission=admission,
            workload=workload,
            team=team,
            cluster_queue=cluster_queue,
            namespace=namespace or "ns",
            flavor=flavor,
            resource=GPU,
            amount=amount,
            holding=holding,
            lender=lender,
            started_at=start,
            ended_at=end,
        )
    return workload


# ---- what other systems said ------------------------------------------------------------------
def source(kind, *, days=30, name=None, first=JUNE, missing=(), **columns):
    """Write a source with its days of June; ``missing`` are days of the month without rows."""
    made = Source.objects.create(
        name=name or kind,
        kind=kind,
        plane=PLANES[kind],
        currency="EUR",
        time_zone="UTC",
        first_day=first.date(),
        **columns,
    )
    for number in range(days):
        start = first + timedelta(days=number)
        stored = "missing" if start.day in missing else "loaded"
        Coverage.objects.create(
            source=made,
            day=start.date(),
            starts_at=start,
            ends_at=start + timedelta(days=1),
            stored=stored,
        )
    return made


def cost(made, day, namespace, **columns):
    """Write a row of OpenCost of one day of June."""
    start = JUNE + timedelta(days=day - 1)
    window = {"starts_at": start, "ends_at": start + timedelta(days=1)}
    return CostRow.objects.create(
        source=made,
        day=start.date(),
        key=f"k{CostRow.objects.count()}",
        namespace=namespace,
        first_at=start,
        last_at=window["ends_at"],
        cluster="gpu-onprem",
        **window,
        **columns,
    )


def tokens(made, team, model, number, spend, *, day=10, **columns):
    """Write a request of LiteLLM."""
    at = JUNE + timedelta(days=day - 1, hours=12)
    key = f"r{TokenRow.objects.count()}"
    return TokenRow.objects.create(
        source=made,
        day=at.date(),
        key=key,
        request_id=key,
        at=at,
        team_id=team,
        model_group=model,
        completion_tokens=number,
        spend=Decimal(spend),
        **columns,
    )
