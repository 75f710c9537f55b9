"""A platform on which every name of a team's things is a canary: a word found nowhere else.

Three teams lend to each other: Datos and IA both ways, Plataforma to and from Datos only, so that
IA and Plataforma are strangers. Everything was decided by real cycles; one gang of Datos was
evicted by IA, one of each team runs, waits and has ended.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from allauth.mfa.models import Authenticator
from django.utils import timezone

from finops import billing
from finops.ingest.configuring import save_source
from finops.models import Budget, Coverage, Fetch, QuotaReplay, SharedCost
from finops.models import Mapping as CostMapping
from finops.replaying.asking import ReplaySpec, ask
from finops.replaying.running import play_next
from finops.sources.windows import day_window
from finops.specs import SourceSpec
from gpuplatform.common import audit
from gpuplatform.common.models import Operation
from gpuplatform.doors.models import Delivery, Webhook
from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    GroupGrant,
    LocalQueue,
    Membership,
    Namespace,
    PriorityClass,
    QuotaRequest,
    ResourceFlavor,
    Team,
    User,
)
from queues.specs import CellSpec
from scheduling.agent_reports import Report, Told, take_reports
from scheduling.agents import greet
from scheduling.cycle import run_cycle
from scheduling.engine.machines import GPU
from scheduling.models import AdmissionCheck, CheckState, Node, Workload
from scheduling.reconciler import reconcile
from scheduling.specs import NodeSpec
from tests.finops.rows import JUNE, price
from tests.scheduling.loop.world import FLAVOR, nodes, work

MONTH = "2026-06"
AGENT, AGENT_NODE = "rack-1", "rack-1-node"
PRICE_ID = 990_001  # number of the first price, so that its address is known
CHECK, GATE = "approval", "gates.example.com/review"
MAPPING_ID = 990_101
SOURCE, SOURCE_DAY = "opencost", "2026-06-01"
BUDGET = "datos-june"
LICENCES = "licences"  # shared from August on, so that June's bills know nothing of it
REQUEST = 990_201
GRANT = 990_301  # what a group at an identity provider gives
REPLAY = UUID("abcdef00-0000-7000-8000-00000000ffff")
REPLAY_WAITS = UUID("abcdef00-0000-7000-8000-00000000fffe")
OPERATION = UUID("abcdef00-0000-7000-8000-00000000fffd")
OPERATION_WAITS = UUID("abcdef00-0000-7000-8000-00000000fffc")
WEBHOOK, DELIVERY = (UUID(f"abcdef00-0000-7000-8000-00000000ff{end}") for end in ("fc", "fd"))
HOUR = timedelta(hours=1)
AUGUST = datetime(2026, 8, 1, tzinfo=UTC)
CODES = {"datos": "zebu", "ia": "yaks", "plataforma": "xeme"}
# Who lends to or borrows from whom: what allowances of the matrix are about.
PARTNERS = {"datos": {"ia", "plataforma"}, "ia": {"datos"}, "plataforma": {"datos"}}
KINDS = (
    "shown",
    "description",
    "costcentre",
    "namespace",
    "queue",
    "door",
    "cohort",
    "colleague",
    "label",
    "running",
    "waiting",
    "ended",
    "evicted",
    "reclaimer",
    "reason",
)
EVICTED, RECLAIMER = "evicted", "reclaimer"
# GPUs of each flavor promised to each team.
NOMINALS: Mapping[str, Mapping[str, int]] = {
    FLAVOR: {"datos": 4, "ia": 4, "plataforma": 0},
    "a100-pcie": {"datos": 2, "ia": 2, "plataforma": 0},
    "h200-sxm": {"datos": 2, "ia": 0, "plataforma": 2},
}
# What runs: (flavor, GPUs), in each case one GPU more than is its own.
RUNS = {"datos": (FLAVOR, 5), "ia": ("a100-pcie", 3), "plataforma": ("h200-sxm", 3)}


def word(team: str, kind: str) -> str:
    """Return the name of a team's thing; each is found nowhere else."""
    assert kind in KINDS
    return f"{CODES[team]}-{kind}"


def uid(team: str, kind: str) -> UUID:
    """Return the uid of a team's workload."""
    number = list(CODES).index(team) * 100 + KINDS.index(kind)
    return UUID(f"abcdef00-0000-7000-8000-{number:012}")


def build(ada: User) -> None:
    """Write the world; the clock must stand at noon of 1 June 2026 and move by ``clock``."""
    _machines()
    _agent(ada)
    _source(ada)
    Cohort.objects.create(name="commons")
    PriorityClass.objects.create(name="urgent", value=100)
    for number, team in enumerate(CODES):
        _promises(team, ada)
        _assign(team, MAPPING_ID + number)
    _webhook(Team.objects.get(name="datos"))
    GroupGrant.objects.create(pk=GRANT, group="/gpu/money", role="finance")


def _webhook(team: Team) -> None:
    """Let Datos tell an address where nobody answers."""
    url, events = "https://localhost:9/", ["workload.finished"]
    hook = Webhook.objects.create(
        uid=WEBHOOK, name=word("datos", "description"), url=url, team=team, events=events, salt="x"
    )
    Delivery.objects.create(
        uid=DELIVERY, webhook=hook, event="ping", key="ping", body="{}", state="failed", code=500
    )


def run(clock: Any) -> None:
    """Let the teams submit and the platform decide until everything has happened once."""
    for team in CODES:
        _submit(team, "ended", RUNS[team][0], 1, expected_duration_s=60)
    _settle()
    clock.shift(HOUR)
    _settle()
    _submit("datos", EVICTED, FLAVOR, 6)
    _settle()
    clock.shift(HOUR)
    _submit("ia", RECLAIMER, FLAVOR, 3, priority=10)
    _settle()
    clock.shift(HOUR)
    for team, (flavor, gpus) in RUNS.items():
        _submit(team, "running", flavor, gpus, priority=5)
    _settle()
    for team, (flavor, _gpus) in RUNS.items():
        _submit(team, "waiting", flavor, 4)
    clock.shift(HOUR)
    _settle()
    AdmissionCheck.objects.create(name=CHECK, kind="manual")
    Workload.objects.filter(pk=uid("datos", "running")).update(gates=[GATE])
    CheckState.objects.create(workload_id=uid("datos", "running"), check_name=CHECK)
    clock.shift(20 * HOUR)
    billing.rebuild_draft(MONTH, now=timezone.now())
    datos = Team.objects.get(name="datos")
    row = Budget(name=BUDGET, scope="team", subject="datos", team=datos, measure="money")
    row.limit, row.first_day = 100, date(2026, 6, 1)
    row.save()
    SharedCost.objects.create(
        name=LICENCES, method="even", amount=100, currency="EUR", valid_from=AUGUST
    )
    _replay()
    _operations()
    told = {"queue": word("datos", "queue"), "flavor": FLAVOR, "resource": GPU, "nominal": 5}
    told |= {"borrowing_limit": None, "lending_limit": None}
    told["was"] = dict(told, nominal=4)
    asked = {"team": datos, "reason": word("datos", "reason"), "cells": [told]}
    QuotaRequest.objects.create(pk=REQUEST, asked_name="lea", **asked)


def _replay() -> None:
    """Replay the first day under quotas that differ in one cell of each team."""
    cells = [CellSpec(word(team, "queue"), FLAVOR, GPU, 3) for team in CODES]
    ada = User.objects.get(username="ada")
    row = ask(ReplaySpec(JUNE.date(), JUNE.date(), tuple(cells)), actor=ada)
    QuotaReplay.objects.filter(pk=row.pk).update(uid=REPLAY)
    play_next()
    row = ask(ReplaySpec(JUNE.date(), JUNE.date(), ()), actor=ada)
    QuotaReplay.objects.filter(pk=row.pk).update(uid=REPLAY_WAITS)


def _operations() -> None:
    """Lea asked for something and got it, and for something that nobody has begun."""
    lea = User.objects.get(username="lea")
    asked: dict[str, Any] = {"asked_by": lea, "asked_name": "lea", "scope": "workloads:submit"}
    asked |= {"kind": "workloads-bulk", "method": "POST", "path": "/api/v1/workloads/bulk/"}
    told = json.dumps({"shown": word("datos", "shown")}).encode()
    done = {"state": "done", "code": 200, "answer": told, "finished_at": timezone.now()}
    kind = {"answer_headers": {"Content-Type": "application/json"}}
    Operation.objects.create(pk=OPERATION, **asked, **done, **kind)
    Operation.objects.create(pk=OPERATION_WAITS, **asked)


def _assign(team: str, pk: int) -> None:
    """Say whose the team of LiteLLM is that has the team's word."""
    CostMapping.objects.create(
        pk=pk,
        kind="litellm_team",
        identity=str(pk),
        value=word(team, "shown"),
        team=Team.objects.get(name=team),
        valid_from=JUNE,
        created_at=JUNE,
    )


def _machines() -> None:
    nodes(2, gpus=4)
    for flavor in list(NOMINALS)[1:]:
        ResourceFlavor.objects.create(name=flavor, node_labels={"accelerator": flavor})
        Node.objects.create(
            name=f"{flavor}-node",
            labels={"accelerator": flavor},
            allocatable={"cpu": 120_000, "memory": 960 * 2**30, GPU: 4, "pods": 110},
        )
    for number, flavor in enumerate(NOMINALS):
        price("1.40", subject=flavor, valid_from=JUNE - timedelta(days=30), pk=PRICE_ID + number)


def _agent(ada: User) -> None:
    """An agent that has said hello and drives a machine of its own."""
    report = Report(1, Told.NODE, node=NodeSpec(AGENT_NODE, ready=False))
    take_reports(AGENT, greet(AGENT, None, actor=ada).epoch, [report], actor=ada)


def _source(ada: User) -> None:
    """A source with a day that could not be loaded and one whose reading waits."""
    spec = SourceSpec(SOURCE, "opencost", url="http://localhost:9", first_day=date(2026, 5, 30))
    source = save_source(spec, ada, reason="The matrix")
    for day, outcome, code in (
        (date(2026, 5, 30), "failed", "SOURCE_NO_DATA"),
        (date.fromisoformat(SOURCE_DAY), "quarantined", "SOURCE_SMALLER"),
    ):
        fetch = Fetch.objects.create(source=source, day=day, outcome=outcome, code=code)
        window = day_window(day)
        Coverage.objects.create(
            source=source,
            day=day,
            starts_at=window.start,
            ends_at=window.end,
            last=fetch,
            quarantined=fetch if outcome == "quarantined" else None,
        )


def _promises(name: str, ada: User) -> None:
    team, _ = Team.objects.get_or_create(name=name)
    team.display_name = word(name, "shown")
    team.description = word(name, "description")
    team.cost_center = word(name, "costcentre")
    team.save()
    colleague = User.objects.create_user(word(name, "colleague"))
    Membership.objects.create(team=team, user=colleague, role="member")
    Authenticator.objects.create(user=colleague, type=Authenticator.Type.TOTP, data={})
    Namespace.objects.create(
        name=word(name, "namespace"), team=team, labels={"canary": word(name, "label")}
    )
    add_queue(team, *(word(name, kind) for kind in ("queue", "cohort", "namespace", "door")))
    for kind, subject in (("ClusterQueue", "queue"), ("Team", "shown"), ("Cohort", "cohort")):
        audit.record(
            ada,
            "promise.updated",
            (kind, word(name, subject)),
            before={"description": "before"},
            after={"description": word(name, "description")},
            reason=word(name, "reason"),
            team=name if kind != "Cohort" else "",
        )


def add_queue(team: Team, name: str, cohort: str, namespace: str, door: str) -> ClusterQueue:
    """Promise the team its GPUs in a cohort of its own below the common one."""
    top = Cohort.objects.get(name="commons")
    own, _ = Cohort.objects.get_or_create(name=cohort, defaults={"parent": top})
    reclaim = "LowerPriority" if team.name == "ia" else "Never"
    queue = ClusterQueue.objects.create(
        name=name, team=team, cohort=own, namespace_selector={}, reclaim_within_cohort=reclaim
    )
    for position, (flavor, nominals) in enumerate(NOMINALS.items()):
        FlavorQuota.objects.create(
            cluster_queue=queue,
            flavor=flavor,
            flavor_position=position,
            resource=GPU,
            nominal=nominals.get(team.name, 1),
        )
    LocalQueue.objects.create(namespace=namespace, name=door, cluster_queue=name)
    return queue


def _submit(team: str, kind: str, flavor: str, gpus: int, **columns: Any) -> Workload:
    return work(
        team,
        word(team, kind),
        pods=gpus,
        uid=uid(team, kind),
        namespace=word(team, "namespace"),
        queue_name=word(team, "door"),
        labels={"canary": word(team, "label")},
        submitted_by=User.objects.get(username=word(team, "colleague")),
        template={"kind": "Job", "metadata": {"name": word(team, kind)}},
        topology={"node_selector": {"accelerator": flavor}},
        **columns,
    )


def _settle() -> None:
    """Decide and reconcile until nothing moves any more."""
    for _ in range(3):
        run_cycle()
        reconcile()


@dataclass(frozen=True)
class World:
    """The built world: its people, signed in, and their tokens."""

    people: Mapping[str, User]
    sessions: Mapping[str, str]
    tokens: Mapping[str, str]
