"""Rows of metering become the facts of the one arithmetic, and its lines those of a draft."""

from datetime import timedelta
from decimal import Decimal

import pytest

from finops import drafts
from finops.loader import load_facts
from finops.models import BillingPeriod
from queues.models import ClusterQueue, Cohort, Namespace
from scheduling.models import CapacityInterval, QuotaInterval, UsageInterval

from . import rows

pytestmark = pytest.mark.django_db
AFTER = rows.JULY + timedelta(days=1)


@pytest.fixture
def teams():
    made = rows.june()
    BillingPeriod.objects.create(name="2026-06", starts_at=rows.JUNE, ends_at=rows.JULY)
    return made


def month():
    return load_facts(BillingPeriod.objects.get(), AFTER)


def hours(idle="separate"):
    """GPU-hours of use by team, kind and lender."""
    return {
        (line.key.team, line.key.kind, line.key.lender): line.hours
        for line in drafts.draft(month(), idle).lines
        if line.key.kind in {"gpu_direct", "gpu_borrowed", "unmanaged"}
    }


def test_rows_by_ground_are_one_run_again(teams):
    half = rows.JUNE + timedelta(hours=135)
    for row in UsageInterval.objects.filter(team=teams["datos"]):
        UsageInterval.objects.create(
            **{
                field.attname: getattr(row, field.attname)
                for field in row._meta.concrete_fields  # noqa: SLF001
                if field.attname not in {"id", "started_at"}
            },
            started_at=half,
        )
        UsageInterval.objects.filter(pk=row.pk).update(ended_at=half)
    runs = [use for use in month().facts.usage if use.labels == {"~metered-team": "datos"}]
    assert [(use.gpus, use.queue) for use in runs] == [(4, "cq-datos")]
    assert runs[0].end - runs[0].start == 270 * 3_600_000_000


def test_loans_of_a_bill_are_exact_parts_where_metering_takes_whole_gpus(teams):
    UsageInterval.objects.filter(team=teams["datos"], lender="cq-ia").delete()
    # One GPU borrowed for 270 h, with 1 lendable at ia and 1 at plataforma.
    assert hours()["datos", "gpu_borrowed", "cq-ia"] == 135
    assert hours()["datos", "gpu_borrowed", "cq-plataforma"] == 135


def test_queues_lend_to_each_other_up_to_the_common_root(teams):
    of_datos = QuotaInterval.objects.filter(cluster_queue="cq-datos")
    of_datos.update(cohort="left", root="top")
    QuotaInterval.objects.exclude(cluster_queue="cq-datos").update(cohort="right", root="top")
    assert {quota.cohort for quota in month().facts.quotas} == {"top"}
    assert hours()["datos", "gpu_borrowed", "cq-ia"] == 270
    Cohort.objects.create(name="left")  # the tree of today, below no other
    assert hours()["datos", "gpu_borrowed", "cq-ia"] == 270
    of_datos.update(root="left")
    assert hours()["datos", "gpu_borrowed", ""] == 540


def test_a_cohort_that_lent_of_its_own_is_named_after_it_is_gone(teams):
    QuotaInterval.objects.exclude(cluster_queue="cq-datos").update(lending_limit=0)
    UsageInterval.objects.filter(team=teams["datos"], lender="cq-ia").update(lender="pool")
    UsageInterval.objects.filter(team=teams["datos"], lender="cq-plataforma").update(lender="pool")
    cohort = Cohort.objects.create(name="pool")
    assert hours()["datos", "gpu_borrowed", "pool"] == 540
    cohort.delete()
    assert hours()["datos", "gpu_borrowed", "pool"] == 540


@pytest.mark.parametrize(
    ("queue_owner", "metered", "namespace_owner", "owner"),
    [
        ("ia", "datos", "plataforma", "ia"),
        (None, "datos", "plataforma", "datos"),
        (None, None, "plataforma", "plataforma"),
        (None, None, None, ""),
    ],
)
def test_the_queues_team_owns_then_the_metered_one_then_the_namespaces(
    teams, queue_owner, metered, namespace_owner, owner
):
    UsageInterval.objects.all().delete()
    ClusterQueue.objects.create(name="cq-new", team=teams.get(queue_owner))
    Namespace.objects.create(name="ns-new", team=teams.get(namespace_owner))
    rows.use(
        teams.get(metered),
        1,
        rows.JUNE,
        rows.JUNE + timedelta(hours=10),
        queue="cq-new",
        namespace="ns-new",
    )
    assert {team for team, _, _ in hours()} == {owner}


@pytest.mark.parametrize("idle", ["separate", "proportional", "even", "owner", "owner_net"])
def test_days_add_up_to_the_line_and_lines_to_the_capacity(teams, idle):
    made = drafts.draft(month(), idle)
    assert made.total == Decimal("4032.00")
    for line in made.lines:
        assert sum(line.days.values()) == line.amount
    assert sum(made.of(team) for team in (*made.teams, drafts.CENTRAL)) == made.total


@pytest.mark.parametrize("idle", ["separate", "proportional", "even", "owner"])
def test_more_use_than_capacity_is_a_negative_line_with_negative_hours(teams, idle):
    QuotaInterval.objects.all().delete()
    CapacityInterval.objects.update(amount=1)
    made = drafts.draft(month(), idle)
    (over,) = (line for line in made.lines if line.key.kind == "over_allocation")
    assert (over.amount < 0, over.hours < 0) == (True, True)
    assert made.total == Decimal("1008.00")
    found = [one for one in made.findings if one.code == "over_allocation"]
    whole = idle in {"proportional", "even"}
    assert found[0].subject == {"resource": "gpu"} | ({} if whole else {"flavor": rows.FLAVOR})


def test_a_month_of_nobody_is_central_under_every_policy(teams):
    UsageInterval.objects.all().delete()
    QuotaInterval.objects.all().delete()
    for idle in ("separate", "proportional", "even", "owner", "owner_net", "hidden"):
        made = drafts.draft(month(), idle)
        assert (made.of(drafts.CENTRAL), made.total) == (Decimal("4032.00"),) * 2


def test_promises_beyond_capacity_are_a_finding_in_hours(teams):
    QuotaInterval.objects.filter(cluster_queue="cq-ia").update(nominal=3)
    (found,) = (one for one in drafts.draft(month(), "separate").findings)
    assert (found.code, found.level, found.numbers) == (
        "overcommitted",
        "info",
        {"gpu_hours": 1440},
    )
    assert found.subject == {"flavor": rows.FLAVOR}
