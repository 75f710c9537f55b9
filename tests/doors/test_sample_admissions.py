"""What the accepted samples become in the first cycle: admitted, borrowed, or waiting."""

import pytest

from gpuplatform.doors.importer import import_documents
from scheduling.cycle import run_cycle
from scheduling.models import UsageInterval, Workload
from tests.doors.samples import on_cluster, text_of

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"


def held() -> dict[str, int]:
    """Return GPUs by ground, as the meter has them."""
    found: dict[str, int] = {}
    for row in UsageInterval.objects.filter(resource=GPU, ended_at=None):
        found[row.holding] = found.get(row.holding, 0) + row.amount
    return found


def test_the_rayjob_is_admitted_inside_nominal_quota() -> None:
    on_cluster(16, "kueue-two-teams-rayjob")

    run_cycle("test")

    assert Workload.objects.get().status == "admitted"
    assert held() == {"nominal": 16}


def test_one_other_busy_gpu_keeps_the_rayjob_pending_as_a_whole() -> None:
    on_cluster(16, "deployment-team-annotation")
    run_cycle("test")
    import_documents(text_of("kueue-two-teams-rayjob"), actor=None)

    run_cycle("test")

    ray = Workload.objects.get(kind="RayJob")
    assert ray.status == "pending"
    assert not ray.admissions.exists()
    assert ray.blockers


def test_four_gpus_in_the_three_teams_queue_are_two_owned_and_two_borrowed() -> None:
    on_cluster(4, "kueue-three-teams")
    labelled = text_of("deployment-team-labels").replace(
        "    equipo: datos\n    producto",
        "    kueue.x-k8s.io/queue-name: lq-datos\n    equipo: datos\n    producto",
        1,
    )
    import_documents(labelled, actor=None)

    run_cycle("test")

    assert Workload.objects.get().status == "admitted"
    assert held() == {"nominal": 2, "borrowed": 2}


def test_the_corrected_pytorchjob_borrows_four() -> None:
    on_cluster(32, "kueue-two-teams-rayjob")
    Workload.objects.all().delete()
    corrected = text_of("pytorchjob-kueue-volcano").replace("replicas: 7", "replicas: 4")
    import_documents(corrected, actor=None)

    run_cycle("test")

    assert held() == {"nominal": 16, "borrowed": 4}


def test_a_deployment_without_queue_is_unmanaged_use() -> None:
    on_cluster(16, "deployment-team-labels")

    run_cycle("test")

    assert held() == {"unmanaged": 4}
