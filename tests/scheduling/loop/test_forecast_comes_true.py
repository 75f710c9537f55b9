"""What a dry run foretells of a workload is what the next cycle then does with it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from queues.models import ClusterQueue, Namespace
from scheduling.checks import ALL_QUEUES, MANUAL
from scheduling.cycle import run_cycle
from scheduling.engine.machines import GPU
from scheduling.models import Admission, AdmissionCheck
from scheduling.selectors.forecast import forecast_spec
from scheduling.services import load_world, submit_workload
from scheduling.shrinking import pods_held
from scheduling.specs import PodSetSpec, WorkloadSpec
from tests.scheduling.loop.world import RECLAIMS, nodes, queue, work

pytestmark = pytest.mark.django_db
ONE = PodSetSpec("main", 1, {GPU: 1})
EIGHT = replace(ONE, count=8)
SPEC = WorkloadSpec("ns-datos", "maybe", (ONE,), queue="lq")


def check(name: str = "approval", queues: str = "cq-datos") -> None:
    AdmissionCheck.objects.create(name=name, kind=MANUAL, queues=[queues])


def two_checks() -> None:
    check("approval")
    check("budget", ALL_QUEUES)
    check("elsewhere", "cq-ia")


def full(priority: int = 0) -> None:
    work("datos", "other", pods=2, gpus=2, priority=priority)
    run_cycle()


def stopped() -> None:
    ClusterQueue.objects.update(stop_policy="Hold")


def nothing() -> None:
    """Leave the world as it is."""


@dataclass
class Case:
    """A workload, what else there is, and what becomes of the workload, in words and figures."""

    spec: WorkloadSpec
    code: str
    words: str = ""
    world: Callable[[], None] = nothing
    figures: dict[str, Any] = field(default_factory=dict)


NOW, RESERVE = (
    "Would be admitted now on h100-sxm",
    "Quota would be reserved for it now on h100-sxm",
)
YES = "; it starts once these admission checks have said yes: "
PARTLY = replace(SPEC, pod_sets=(replace(EIGHT, min_count=2),))
CASES = {
    "it fits": Case(SPEC, "WOULD_BE_ADMITTED", f"{NOW}."),
    "it fits, outside every queue": Case(
        replace(SPEC, queue=""), "WOULD_BE_ADMITTED", "Would be admitted now on free nodes."
    ),
    "it borrows": Case(
        replace(SPEC, pod_sets=(replace(ONE, count=3),)),
        "WOULD_BE_ADMITTED_BORROWING",
        f"{NOW}, borrowing 1 GPU.",
    ),
    "it is content with fewer pods": Case(
        PARTLY,
        "WOULD_BE_ADMITTED_IN_PART",
        f"{NOW}, with 4 of 8 pods, borrowing 2 GPUs.",
        figures={"pods": 4, "of_pods": 8},
    ),
    "a gang with a minimum": Case(
        replace(SPEC, pod_sets=(EIGHT,), min_member=3),
        "WOULD_BE_ADMITTED_IN_PART",
        f"{NOW}, with 4 of 8 pods, borrowing 2 GPUs.",
        figures={"pods": 4, "of_pods": 8},
    ),
    "a check is to be answered": Case(
        SPEC, "WOULD_RESERVE", f"{RESERVE}{YES}approval.", check, {"checks": "approval"}
    ),
    "two checks, and fewer pods": Case(
        PARTLY,
        "WOULD_RESERVE",
        f"{RESERVE}, with 4 of 8 pods, borrowing 2 GPUs{YES}approval, budget.",
        two_checks,
        {"checks": "approval, budget", "pods": 4, "of_pods": 8},
    ),
    "it gives way to nobody": Case(SPEC, "WOULD_WAIT", world=full),
    "it takes the place of another": Case(
        replace(SPEC, priority=5),
        "WOULD_EVICT",
        "Would evict 1 workload and start once they have stopped.",
        full,
    ),
    "it takes a place, and a check is to be answered": Case(
        replace(SPEC, priority=5),
        "WOULD_EVICT_AND_RESERVE",
        f"Would evict 1 workload and have quota reserved once they have stopped{YES}approval.",
        lambda: (full(), check())[0],
    ),
    "a gate is shut": Case(replace(SPEC, gates=("example.com/wait",)), "WOULD_WAIT"),
    "it is kept back": Case(replace(SPEC, active=False), "WOULD_WAIT"),
    "its queue is stopped": Case(SPEC, "WOULD_WAIT", world=stopped),
    "it never fits the pool as a whole": Case(
        replace(SPEC, pod_sets=(replace(ONE, count=4), replace(ONE, name="two", count=1))),
        "WOULD_WAIT",
    ),
}
STARTS = {"WOULD_BE_ADMITTED", "WOULD_BE_ADMITTED_BORROWING", "WOULD_BE_ADMITTED_IN_PART"}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_foretold_comes_true(clock, settings, case):
    settings.ACCEPT_IMPOSSIBLE_WORKLOADS = True
    nodes(1, gpus=4)
    queue("datos", 2, cohort="llm", **RECLAIMS)
    queue("ia", 2, cohort="llm")
    Namespace.objects.get_or_create(name="ns-datos")
    case.world()
    told = forecast_spec(case.spec, load_world(), None, None)
    assert told.code == case.code
    assert told.sentence == (case.words or told.sentence)
    assert told.numbers | case.figures == told.numbers

    row = submit_workload(case.spec, actor=None).workload
    running = Admission.objects.filter(evicted_at=None).count()
    run_cycle()
    row.refresh_from_db()
    evicted = running - Admission.objects.exclude(workload=row).filter(evicted_at=None).count()
    assert evicted == told.numbers.get("count", 0)
    reserved = case.code == "WOULD_RESERVE"
    assert (row.status == "admitted") == (case.code in STARTS)
    assert Admission.objects.filter(workload=row, is_reserved=True).exists() == reserved
    asked = sum(pod_set.count for pod_set in case.spec.pod_sets)
    there = told.numbers.get("pods", asked) if reserved or case.code in STARTS else 0
    assert pods_held(row).total() == there
    waits_for = ", ".join(row.checks.order_by("check_name").values_list("check_name", flat=True))
    assert waits_for == (told.numbers.get("checks", "") if reserved else "")
