"""More of everything that a list may hold: what the number of queries must not depend on."""

from datetime import timedelta
from decimal import Decimal

from django.utils import timezone

from finops.models import Bill, BillingPeriod, BillLine, Budget, BudgetState, Finding
from gpuplatform.common import audit
from gpuplatform.doors.models import Delivery, Webhook
from queues.models import ApiToken, ClusterQueue, Membership, Namespace, ResourceFlavor, Team, User
from scheduling.engine.machines import GPU
from scheduling.models import (
    Admission,
    Agent,
    AgentNode,
    CapacityInterval,
    Node,
    Placement,
    QuotaInterval,
    UsageInterval,
    Workload,
    WorkloadEvent,
)
from tests.finops.rows import JUNE, price
from tests.matrix.world import MONTH, WEBHOOK, add_queue, uid, word
from tests.scheduling.loop.world import FLAVOR, work

HOUR = timedelta(hours=1)


def grow(first: int, last: int) -> None:
    """Add things number ``first`` up to ``last``, each with all that hangs on it."""
    for number in range(first, last):
        team = _team(number)
        queue = add_queue(team, *(f"{kind}-{number}" for kind in ("cq", "cohort", "ns", "lq")))
        _machine(number)
        _member_of_datos(number)
        _work_of_datos(number)
        for status in ("running", "pending", "finished"):
            _work(number, team, queue, status)
        _money(number, team, queue)
        _budget(number)
        _webhook(number)


def _webhook(number: int) -> None:
    """Let one more be told of a team, and one more be told by the webhook of Datos."""
    team = Team.objects.get(name=f"team-{number}")
    Webhook.objects.create(name=f"hook-{number}", url="https://localhost:9/", team=team, salt="x")
    key = f"ping-{number}"
    Delivery.objects.create(webhook_id=WEBHOOK, event="ping", key=key, body="{}")


def _team(number: int) -> Team:
    team = Team.objects.create(name=f"team-{number}", display_name=f"Team {number}")
    user = User.objects.create_user(f"user-{number}")
    Membership.objects.create(team=team, user=user, role="lead")
    Namespace.objects.create(name=f"ns-{number}", team=team)
    audit.record(
        user, "team.updated", ("Team", team.name), reason="because, and why so", team="datos"
    )
    return team


def _machine(number: int) -> None:
    flavor = f"flavor-{number}"
    labels = {"accelerator": flavor}
    ResourceFlavor.objects.create(name=flavor, node_labels=labels)
    Node.objects.create(
        name=f"node-{number}", labels=labels, allocatable={GPU: 4, "cpu": 64_000, "pods": 110}
    )
    agent = Agent.objects.create(name=f"agent-{number}", owner=User.objects.first())
    AgentNode.objects.create(agent=agent, name=f"node-{number}")
    CapacityInterval.objects.create(
        node=f"node-{number}", flavor=flavor, resource=GPU, amount=4, started_at=JUNE
    )
    price("1.40", subject=flavor, valid_from=JUNE)


def _member_of_datos(number: int) -> None:
    user = User.objects.create_user(f"member-{number}")
    Membership.objects.create(team=Team.objects.get(name="datos"), user=user)
    namespace = f"ns-datos-{number}"
    Namespace.objects.create(name=namespace, team=Team.objects.get(name="datos"))
    for holder in User.objects.filter(username__in=["ada", "lea"]):
        ApiToken.objects.create(user=holder, name=f"token {number}", scopes=["read"])


def _work_of_datos(number: int) -> None:
    """Put more on the pages of one queue, one workload and one node."""
    datos = Team.objects.get(name="datos")
    queue = ClusterQueue.objects.get(name=word("datos", "queue"))
    for status in ("running", "pending"):
        row = _work(number, datos, queue, status)
        story = Workload.objects.get(uid=uid("datos", "running"))
        WorkloadEvent.objects.create(workload=story, kind="preempting", other=row)


def _work(number: int, team: Team, queue: ClusterQueue, status: str) -> Workload:
    now = timezone.now()
    row = work(
        team.name,
        f"{team.name}-{status}-{number}",
        team=team,
        namespace=word("datos", "namespace") if team.name == "datos" else f"ns-{number}",
        queue_name=word("datos", "door") if team.name == "datos" else f"lq-{number}",
        status=status,
        outcome="succeeded" if status == "finished" else "",
        created_at=now - 2 * HOUR,
    )
    WorkloadEvent.objects.create(workload=row, kind="admitted", facts={"gpus": 1})
    if status == "pending":
        blocker = {"code": "QUOTA_NOMINAL", "resource": GPU, "needed": 1, "available": 0}
        row.blockers = [{**blocker, "where": queue.name, "facts": {"nominal": 1, "used": 1}}]
        row.save()
        return row
    end = now if status == "finished" else None
    held = Admission.objects.create(
        workload=row, cluster_queue=queue.name, admitted_at=now - HOUR, released_at=end
    )
    Placement.objects.create(
        admission=held,
        pod_set="worker",
        node="h100-node-01",
        count=1,
        flavors={GPU: FLAVOR},
        requests={GPU: 1},
    )
    for holding, lender in (("nominal", ""), ("borrowed", word("ia", "queue"))):
        UsageInterval.objects.create(
            admission=held,
            workload=row,
            team=team,
            cluster_queue=queue.name,
            namespace=row.namespace,
            flavor=FLAVOR,
            resource=GPU,
            amount=1,
            holding=holding,
            lender=lender,
            started_at=now - HOUR,
            ended_at=end,
        )
    return row


def _budget(number: int) -> None:
    row = Budget.objects.create(
        name=f"budget-{number}",
        scope="team",
        subject="datos",
        team=Team.objects.get(name="datos"),
        measure="money",
        limit=100,
        first_day=JUNE.date(),
    )
    BudgetState.objects.create(budget=row, starts_at=JUNE, ends_at=JUNE + HOUR, spent=1)


def _money(number: int, team: Team, queue: ClusterQueue) -> None:
    """Bill the team in June, and Datos in a month of long ago."""
    QuotaInterval.objects.create(
        cluster_queue=queue.name, flavor=FLAVOR, resource=GPU, nominal=1, started_at=JUNE
    )
    june = BillingPeriod.objects.get(name=MONTH)
    Finding.objects.create(period=june, code="UNPRICED", severity="warning", subject=team.name)
    year, month = divmod(number, 12)
    starts = JUNE.replace(year=2000 + year, month=month + 1)
    past = BillingPeriod.objects.create(
        name=f"{starts:%Y-%m}", starts_at=starts, ends_at=starts + 28 * 24 * HOUR
    )
    for period, owner in ((june, team), (past, Team.objects.get(name="datos"))):
        _bill(period, owner)
    _line(Bill.objects.get(period=june, team__name="datos"), number + 100)


def _bill(period: BillingPeriod, team: Team) -> None:
    day = f"{period.starts_at:%Y-%m-%d}"
    bill = Bill.objects.create(
        period=period, team=team, total=Decimal(1), by_day={day: {"gpu_direct": "1.00"}}
    )
    _line(bill, 1)


def _line(bill: Bill, number: int) -> None:
    BillLine.objects.create(
        bill=bill,
        number=number,
        kind="gpu_direct",
        flavor=FLAVOR,
        quantity=Decimal(1),
        unit_price=Decimal(1),
        amount=Decimal(1),
        currency="EUR",
    )
