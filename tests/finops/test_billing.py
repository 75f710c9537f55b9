"""Draft bills from rows of metering, to the cent."""

from datetime import timedelta
from decimal import Decimal
from typing import get_args

import pytest

from finops import billing
from finops.allocation import facts as allocation_facts
from finops.allocation.facts import instant
from finops.metered_facts import usage_facts
from finops.models import Bill, BillingPeriod, BillLine, Finding
from finops.models.bills import IdlePolicy
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected
from queues.models import Namespace
from scheduling.models import Admission, CapacityInterval

from . import rows

pytestmark = pytest.mark.django_db
AFTER = rows.JULY + timedelta(days=1)


def totals(period="2026-06"):
    return {
        bill.team.name if bill.team else "central": bill.total
        for bill in Bill.objects.filter(period__name=period).select_related("team")
    }


def amounts(**amount_by_name):
    return {name: Decimal(amount) for name, amount in amount_by_name.items()}


def everything():
    lines = BillLine.objects.order_by("bill__team__name", "number").values_list(
        "bill__team__name", "number", "kind", "bucket", "flavor", "lender", "quantity", "amount"
    )
    bills = Bill.objects.order_by("team__name").values_list("team__name", "by_day", "by_queue")
    return list(lines), list(bills), list(Finding.objects.values_list("code", "numbers"))


def test_the_articles_month_comes_out_to_the_cent():
    rows.june()
    period = billing.rebuild_draft("2026-06", now=AFTER)
    assert totals() == amounts(
        datos="1512.00", ia="604.80", plataforma="352.80", central="1562.40"
    )
    assert period.capacity_cost == Decimal("4032.00")
    assert period.capacity_gpu_hours == Decimal(2880)
    assert (period.starts_at, period.ends_at) == (rows.JUNE, rows.JULY)
    idle = BillLine.objects.get(bill__team=None)
    assert (idle.kind, idle.bucket, idle.quantity) == ("idle", "idle", Decimal(1116))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (
            "proportional",
            amounts(datos="2468.57", ia="987.43", plataforma="576.00", central="0.00"),
        ),
        ("even", amounts(datos="2032.80", ia="1125.60", plataforma="873.60", central="0.00")),
        ("hidden", amounts(datos="1512.00", ia="604.80", plataforma="352.80", central="1562.40")),
        ("owner_net", amounts(datos="2772.00", ia="630.00", plataforma="630.00", central="0.00")),
    ],
)
def test_every_idle_policy_shares_out_the_same_4032_euros(policy, expected):
    rows.june()
    period = billing.rebuild_draft("2026-06", now=AFTER)
    billing.choose_idle_policy("2026-06", policy, None, "trial of the policies")
    assert totals() == expected
    assert sum(totals().values()) == period.capacity_cost
    entry = AuditEntry.objects.get(action="billing_period.idle_policy_chosen")
    assert entry.after == {"idle_policy": policy}


def test_the_proportional_idle_shares_are_the_articles_total_split_right():
    rows.june()
    billing.choose_idle_policy("2026-06", "proportional", None)
    shares = BillLine.objects.filter(kind="idle_share").order_by("bill__team__name")
    assert [line.amount for line in shares] == [
        Decimal("956.57"),
        Decimal("382.63"),
        Decimal("223.20"),
    ]


def test_borrowed_hours_are_lines_of_their_own_that_name_the_lender():
    rows.june()
    billing.rebuild_draft("2026-06", now=AFTER)
    lines = BillLine.objects.filter(bill__team__name="datos").values_list(
        "kind", "lender", "quantity", "unit_price", "amount"
    )
    assert list(lines) == [
        ("gpu_direct", "", Decimal(540), Decimal("1.40"), Decimal("756.00")),
        ("gpu_borrowed", "cq-ia", Decimal(270), Decimal("1.40"), Decimal("378.00")),
        ("gpu_borrowed", "cq-plataforma", Decimal(270), Decimal("1.40"), Decimal("378.00")),
    ]


def test_doing_it_twice_changes_nothing():
    rows.june()
    billing.rebuild_draft("2026-06", now=AFTER)
    first = everything()
    billing.rebuild_draft("2026-06", now=AFTER)
    assert everything() == first


@pytest.mark.parametrize("policy", IdlePolicy.values)
def test_days_and_queues_add_up_to_the_lines(policy):
    rows.june()
    billing.choose_idle_policy("2026-06", policy, None)
    for bill in Bill.objects.all():
        by_day = [Decimal(part) for day in bill.by_day.values() for part in day.values()]
        assert sum(by_day) == bill.total
        direct = bill.lines.filter(kind__in=["gpu_direct", "gpu_borrowed", "unmanaged"])
        assert sum(Decimal(part) for part in bill.by_queue.values()) == sum(
            line.amount for line in direct
        )


def test_a_month_that_goes_on_is_billed_up_to_now():
    rows.june()
    period = billing.rebuild_draft("2026-06", now=rows.JUNE + timedelta(hours=100))
    assert period.capacity_cost == Decimal("560.00")
    assert totals()["datos"] == Decimal("560.00")


def test_a_change_of_price_in_the_month_is_billed_from_its_hour():
    rows.june()
    change = rows.JUNE + timedelta(hours=135)
    price = rows.Price.objects.get()
    rows.Price.objects.filter(pk=price.pk).update(valid_to=change)
    rows.price("2.00", valid_from=change)
    billing.rebuild_draft("2026-06", now=AFTER)
    assert totals()["datos"] == Decimal(540) * Decimal("1.40") + Decimal(540) * 2
    lines = BillLine.objects.filter(bill__team__name="datos", kind="gpu_direct")
    assert [(line.unit_price, line.amount) for line in lines] == [
        (Decimal("1.40"), Decimal("756.00") / 2),
        (Decimal(2), Decimal("540.00")),
    ]


def test_the_price_for_every_flavor_fills_in_where_a_flavor_has_none():
    rows.june()
    rows.Price.objects.all().delete()
    half = rows.JUNE + timedelta(days=15)
    rows.price("3.00", valid_from=half)
    rows.price("1.00", subject="*", valid_from=rows.JUNE)
    period = billing.rebuild_draft("2026-06", now=AFTER)
    assert period.capacity_cost == Decimal(1440 * 1 + 1440 * 3)
    assert not Finding.objects.exists()


def test_hours_without_a_price_are_a_critical_finding_and_no_zero_in_silence():
    rows.june()
    rows.Price.objects.all().delete()
    billing.rebuild_draft("2026-06", now=AFTER)
    found = Finding.objects.filter(code="unpriced")
    assert {(row.subject, row.severity) for row in found} == {
        ("flavor=h100-sxm source=capacity", "critical"),
        ("flavor=h100-sxm source=usage", "critical"),
    }


def test_use_without_a_team_goes_to_the_owner_of_its_namespace_or_to_a_named_bucket():
    teams = rows.june()
    Namespace.objects.create(name="ns-ia", team=teams["ia"])
    start = rows.JUNE + timedelta(hours=702)
    rows.use(None, 1, start, start + timedelta(hours=10), queue="", namespace="ns-ia")
    rows.use(None, 1, start, start + timedelta(hours=5), queue="", namespace="elsewhere")
    billing.rebuild_draft("2026-06", now=AFTER)
    assert totals()["ia"] == Decimal("604.80") + 14
    stray = BillLine.objects.get(bill__team=None, kind="unmanaged")
    assert (stray.bucket, stray.amount) == ("unallocated_namespace", Decimal("7.00"))
    assert Finding.objects.filter(code="unallocated").exists()


def test_a_broken_node_is_paid_for_like_any_other():
    rows.june()
    CapacityInterval.objects.update(ended_at=rows.JUNE + timedelta(hours=360))
    CapacityInterval.objects.create(
        node="h100-node-01",
        flavor=rows.FLAVOR,
        resource=rows.GPU,
        amount=4,
        healthy=False,
        started_at=rows.JUNE + timedelta(hours=360),
    )
    assert billing.rebuild_draft("2026-06", now=AFTER).capacity_cost == Decimal("4032.00")


def test_a_month_in_madrid_has_the_hours_that_really_pass(settings):
    settings.BILLING_TIME_ZONE = "Europe/Madrid"
    rows.june()
    october = billing.rebuild_draft("2026-10", now=AFTER + timedelta(days=365))
    assert october.capacity_cost == Decimal("4172.00")  # 745 h x 4 x 1.40


@pytest.mark.parametrize(
    ("name", "code"),
    [("2026-13", "BAD_VALUE"), ("June", "BAD_VALUE"), ("2031-01", "OUT_OF_RANGE")],
)
def test_what_is_not_a_month_to_bill_is_refused(name, code):
    with pytest.raises(Rejected) as refusal:
        billing.rebuild_draft(name, now=AFTER)
    assert [problem.code for problem in refusal.value.problems] == [code]
    assert not BillingPeriod.objects.exists()


def test_a_month_that_is_no_longer_open_stays_as_it_is():
    rows.june()
    billing.rebuild_draft("2026-06", now=AFTER)
    BillingPeriod.objects.update(status="closed")
    rows.Price.objects.update(amount=Decimal(99))
    with pytest.raises(Rejected) as refusal:
        billing.rebuild_draft("2026-06", now=AFTER)
    assert refusal.value.problems[0].code == "PERIOD_NOT_OPEN"
    assert totals()["datos"] == Decimal("1512.00")
    with pytest.raises(Rejected):
        billing.choose_idle_policy("2026-06", "even", None)
    assert BillingPeriod.objects.get().idle_policy == "separate"
    assert billing.rebuild_open(AFTER) != []
    assert totals()["datos"] == Decimal("1512.00")


def test_this_month_and_the_last_one_are_rebuilt_where_something_was_metered():
    assert billing.rebuild_open(AFTER) == []
    rows.june()
    assert [period.name for period in billing.rebuild_open(AFTER)] == ["2026-06", "2026-07"]


def test_policies_have_the_same_names_as_in_the_pure_heart():
    assert set(IdlePolicy.values) == set(get_args(allocation_facts.IdlePolicy))


def test_metering_that_contradicts_itself_leaves_the_last_draft_and_a_critical_finding():
    rows.june()
    billing.rebuild_draft("2026-06", now=AFTER)
    CapacityInterval.objects.create(
        node="h100-node-01",
        flavor=rows.FLAVOR,
        resource=rows.GPU,
        amount=4,
        started_at=rows.JUNE,
        ended_at=rows.JUNE + timedelta(days=2),
    )
    with pytest.raises(Rejected) as refusal:
        billing.rebuild_draft("2026-06", now=AFTER)
    assert refusal.value.problems[0].code == "facts_refused"
    assert totals()["datos"] == Decimal("1512.00")
    found = Finding.objects.get()
    assert (found.code, found.severity) == ("facts_refused", "critical")
    assert "h100-node-01/h100-sxm overlaps" in found.sentence
    assert [period.name for period in billing.rebuild_open(AFTER)] == ["2026-07"]


@pytest.mark.parametrize(("reason", "is_evicted"), [("Cancelled", False), ("Preempted", True)])
def test_only_what_the_platform_took_back_counts_as_evicted(reason, is_evicted):
    rows.june()
    run = Admission.objects.filter(workload__name="w1")
    run.update(evicted_at=rows.JULY, eviction_reason=reason)
    used = usage_facts(allocation_facts.Period(instant(rows.JUNE), instant(rows.JULY)), "")
    workload = str(run.get().workload_id)
    assert {use.preempted for use in used if use.workload == workload} == {is_evicted}
    assert {use.preempted for use in used if use.workload != workload} == {False}
