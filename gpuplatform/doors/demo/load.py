"""Load the demo: people and machines first, then the past, move by move."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction

from finops.billing import rebuild_draft
from finops.closing.steps import put_forward_ended
from finops.services import set_price
from finops.specs import PriceSpec
from gpuplatform.common import clock
from gpuplatform.doors.demo import history, other_systems, plans, platform
from gpuplatform.doors.demo.people import PEOPLE, hire
from gpuplatform.doors.demo.play import Move, minutes_before, play, settle, submission
from gpuplatform.doors.importer import import_documents
from queues.models import ClusterQueue, User
from queues.services import describe_cluster_queue, issue_token, save_cluster_queue
from scheduling.models import Workload
from scheduling.services import delete_node, set_cordon

Say = Callable[[str], object]


@transaction.atomic
def load_demo(now: datetime, *, days: int, say: Say) -> dict[str, Any]:
    """Fill an empty database; all or nothing.

    Returns:
        The sign-in card: logins, a token, and what ``up`` prints.
    """
    now = now.replace(microsecond=0)
    with clock.at(history.JUNE):
        users = hire()
        _import(platform.articles(), users["ada"])
        set_price(
            PriceSpec("gpu_hour", "h100-sxm", Decimal("1.40"), valid_from=history.JUNE),
            actor=users["fin"],
        )
    say("June 2026 of the articles ...")
    play([submission(job) for job in history.june()], until=history.JUNE + timedelta(days=30))
    with clock.at(history.JUNE + timedelta(days=30)):
        delete_node("h100-node-01", actor=users["ada"], reason="Moved to the new hall")
        settle()  # the worker would notice at once
    _open_pool(now - timedelta(days=days), users)
    say(f"{days} days of six teams ...")
    play(_moves(now, days, users), until=now)
    other_systems.connect(now, days, users)
    plans.share_rent(now - timedelta(days=days), users)
    for month in sorted({"2026-06", *_months(now - timedelta(days=days), now)}):
        rebuild_draft(month)
    put_forward_ended()
    plans.plan(now, users)
    _, secret = issue_token(users["bo"], "demo", ["read", "workloads:submit"], actor=users["ada"])
    return card(secret)


def _open_pool(at: datetime, users: dict[str, User]) -> None:
    with clock.at(at):
        _import(platform.articles(), users["ada"])
        _import(platform.pool(), users["ada"])
        for flavor, amount in (("h100-pool", "2.10"), ("a100-pool", "1.10")):
            set_price(
                PriceSpec("gpu_hour", flavor, Decimal(amount), valid_from=at), actor=users["fin"]
            )


def _moves(now: datetime, days: int, users: dict[str, User]) -> list[Move]:
    jobs = [job for job in history.sixty_days(now) if job.at > now - timedelta(days=days)]
    moves = [submission(job) for job in [*jobs, *history.last_hours(now)]]
    ada = users["ada"]
    moves.append(
        Move(
            minutes_before(now, 180),
            lambda: set_cordon("gpu-c4-4", True, actor=ada, reason="Fan failure, part ordered"),
        )
    )
    moves.append(Move(minutes_before(now, 120), lambda: _import([notebook()], ada)))
    moves.append(Move(minutes_before(now, 20), lambda: _cut_robotics(ada)))
    return moves


def _cut_robotics(ada: User) -> None:
    """Lower a borrowing limit below what a waiting job needs: it becomes impossible."""
    spec = describe_cluster_queue(ClusterQueue.objects.get(name="cq-robotics"))
    group = spec.groups[0]
    quota = replace(group.flavors[0].quotas[0], borrowing_limit=16)
    flavor = replace(group.flavors[0], quotas=(quota,))
    save_cluster_queue(
        replace(spec, groups=(replace(group, flavors=(flavor,)),)),
        actor=ada,
        reason="Keep A100 for the bio deadline",
    )


def notebook() -> platform.Document:
    """Return a Deployment outside every queue: GPUs in use that nobody was promised."""
    container = {
        "name": "lab",
        "image": "registry.internal/lab:7",
        "resources": {"limits": {platform.GPU: "1"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "old-notebook", "namespace": "ns-search"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "old-notebook"}},
            "template": {
                "metadata": {"labels": {"app": "old-notebook"}},
                "spec": {
                    "nodeSelector": {"gpuplatform.io/pool": "a100"},
                    "containers": [container],
                },
            },
        },
    }


def _import(documents: list[platform.Document], actor: User) -> None:
    report = import_documents(platform.dump(documents), actor=actor)
    refused = [result for result in report.results if result.verdict == "rejected"]
    assert not refused, f"the demo's own manifests were refused: {refused}"


def _months(start: datetime, end: datetime) -> list[str]:
    names = {f"{start:%Y-%m}", f"{end:%Y-%m}"}
    while start < end:
        names.add(f"{start:%Y-%m}")
        start += timedelta(days=27)
    return sorted(names)


def card(secret: str) -> dict[str, Any]:
    """Return what a newcomer needs: logins by persona, and a token of Bo, member of Bio."""
    return {
        "logins": [
            {
                "username": person.username,
                "password": person.password,
                "persona": str(
                    person.role.label
                    if person.role
                    else f"{person.team_role.label}, {person.team}"
                ),
            }
            for person in PEOPLE
        ],
        "token": secret,
        "namespace": "ns-bio",
        "queue": "lq-bio",
        "workloads": Workload.objects.count(),
    }
