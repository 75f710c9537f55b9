"""Run inside ``manage.py shell``: people, machines and promises of the walks, and a month.

Each walk has a team and machines of its own, so that they may come in any order:

- Plataforma and IA share sixteen H100 in a cohort; Plataforma borrows eight of them (the admin).
- Datos has four A100 and wants eight (the lead).
- Riesgo has four L40S (the member).
- Robots has a queue that two admins edit, Maps one that is edited without a mouse.
- June is over and billed as a draft (finance); datos has a bill of the running month.
"""

from datetime import timedelta

from django.utils import timezone

from finops import billing
from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    Namespace,
    ResourceFlavor,
    Team,
)
from queues.services import create_person, set_membership, set_platform_role
from scheduling.models import CapacityInterval, Node, QuotaInterval, Workload
from tests.finops import rows
from tests.finops.closing.world import charged_june
from tests.scheduling.loop.world import GPU, work

PASSWORD = "correct horse battery"
PEOPLE = {"ada": "admin", "abe": "admin", "fin": "finance", "kim": "finance"}
MEMBERS = {"lea": ("datos", "lead"), "rita": ("riesgo", "member")}
MACHINES = {"h100-sxm": 4, "a100-pcie": 1, "l40s": 1}  # nodes of four GPUs
# team -> (flavor, nominal, cohort)
PROMISES = {
    "plataforma": ("h100-sxm", 8, "llm-platform"),
    "ia": ("h100-sxm", 8, "llm-platform"),
    "datos": ("a100-pcie", 4, ""),
    "riesgo": ("l40s", 4, ""),
    "robots": ("l40s", 0, ""),
    "maps": ("l40s", 0, ""),
}


def machines(flavor, count):
    ResourceFlavor.objects.update_or_create(
        name=flavor, defaults={"node_labels": {"accelerator": flavor}}
    )
    for number in range(1, count + 1):
        Node.objects.create(
            name=f"{flavor.split('-')[0]}-node-{number:02}",
            labels={"accelerator": flavor},
            allocatable={"cpu": 120_000, "memory": 960 * 2**30, GPU: 4, "pods": 110},
        )


def promise(name, flavor, nominal, cohort):
    team, _ = Team.objects.get_or_create(name=name, defaults={"display_name": name.title()})
    group = Cohort.objects.get_or_create(name=cohort)[0] if cohort else None
    queue, _ = ClusterQueue.objects.update_or_create(
        name=f"cq-{name}", defaults={"team": team, "cohort": group, "namespace_selector": {}}
    )
    FlavorQuota.objects.create(cluster_queue=queue, flavor=flavor, resource=GPU, nominal=nominal)
    Namespace.objects.create(name=f"ns-{name}", team=team)
    LocalQueue.objects.create(namespace=f"ns-{name}", name="lq", cluster_queue=queue.name)


def this_month(now):
    """Let Datos have used its A100 since the month began, one hour ago at the latest."""
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rows.price("2.10", subject="a100-pcie", valid_from=first - timedelta(days=30))
    cell = {"flavor": "a100-pcie", "resource": GPU, "started_at": first}
    CapacityInterval.objects.create(node="a100-node-01", amount=4, **cell)
    QuotaInterval.objects.create(cluster_queue="cq-datos", nominal=4, **cell)
    rows.use(Team.objects.get(name="datos"), 2, first, now, flavor="a100-pcie")


def seed(now):
    charged_june()
    for flavor, count in MACHINES.items():
        machines(flavor, count)
    for name, promised in PROMISES.items():
        promise(name, *promised)
    people = {name: create_person(name, actor=None, password=PASSWORD) for name in PEOPLE}
    for name, role in PEOPLE.items():
        set_platform_role(people[name], role, True, actor=None)
    for name, (team, role) in MEMBERS.items():
        person = create_person(name, actor=people["ada"], password=PASSWORD)
        set_membership(Team.objects.get(name=team), person, role, people["ada"])
    this_month(now)
    Workload.objects.update(status="finished", outcome="succeeded", finished_at=now)  # the past
    work("plataforma", "train", pods=2, gpus=4)
    work("plataforma", "batch-eval", gpus=4)
    work("plataforma", "tune", gpus=4)
    work("datos", "finetune", gpus=4)
    work("datos", "distil", gpus=4)
    billing.rebuild_draft(f"{now:%Y-%m}", now=timezone.now())  # after all that it rests on


seed(timezone.now())
