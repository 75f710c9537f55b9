"""How busy GPUs were, by the work that held them, and as the reader may see it."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
import time_machine

from finops.gpu_use import measured_use
from finops.models import GpuUseRow, Source
from scheduling.models import Admission, Workload

from . import rows

pytestmark = pytest.mark.django_db
AFTER = rows.JULY + timedelta(days=1)


@pytest.fixture
def june():
    """The articles' month: one workload of each team, in the namespace ``ns``."""
    with time_machine.travel(AFTER, tick=False):
        yield rows.june()


def measured(pod, idle, *, namespace="ns", day=2):
    source = Source.objects.first() or rows.source("prometheus")
    key = f"{namespace}/{pod}/{day}"
    GpuUseRow.objects.create(
        source=source,
        day=date(2026, 6, day),
        key=key,
        namespace=namespace,
        pod=pod,
        sampled_gpu_hours=24,
        busy_gpu_hours=6,
        idle_gpu_hours=idle,
    )


def idle_of(name):
    found = measured_use(None, rows.JUNE, rows.JULY)
    workload = Workload.objects.get(name=name)
    return found[workload.pk].idle if workload.pk in found else None


def test_a_pod_is_of_the_work_that_its_name_begins_with(june):
    Workload.objects.filter(name="w1").update(name="w0-b")
    measured("w0-worker-0-x7k2p", 3)
    measured("w0-b-worker-0", 5, day=13)
    measured("w0b-worker-0", 7)
    measured("w0-worker-1", 9, namespace="elsewhere")
    measured("", 11)
    assert (idle_of("w0"), idle_of("w0-b"), idle_of("w2")) == (3, 5, None)


def test_a_member_of_an_agent_names_its_admission(june):
    admission = Admission.objects.get(workload__name="w2")
    measured(f"{admission.pk}.1.worker.0.1@node", 4, namespace="", day=15)
    assert idle_of("w2") == 4
    assert measured_use([admission.workload_id], None, AFTER)[admission.workload_id].idle == 4


def test_days_outside_the_window_do_not_count(june):
    measured("w0-0", 3)
    measured("w0-0", 5, day=9)
    uid = Workload.objects.get(name="w0").pk
    start = rows.JUNE + timedelta(days=1)
    assert measured_use(None, start, start + timedelta(days=1))[uid].idle == 3


def test_page_file_and_answer_say_what_became_of_gpu_hours(june, fin, signed_in, token_of, client):
    measured("w0-0", Decimal("2.5"))
    browser, headers = signed_in(fin), {"Authorization": token_of(fin, "read")}
    address = "/api/v1/gpu-hours/?window=2026-06"
    answer = client.get(address, headers=headers).json()
    held = {row["group"]: row["held_gpu_hours"] for row in answer["rows"]}
    assert held == {"datos": "1080.000000", "ia": "432.000000", "plataforma": "252.000000"}
    by_team = {row["group"]: row["idle_gpu_hours"] for row in answer["rows"]}
    assert by_team == {"datos": "2.500000", "ia": None, "plataforma": None}
    assert answer["total"]["held_gpu_hours"] == "1764.000000"
    assert answer["sources"]["idle"] == "utilisation"
    page = browser.get("/gpu-hours/?window=2026-06").content.decode()
    assert "1,764.0 GPU-hours held" in page
    file = browser.get("/gpu-hours/?window=2026-06&format=csv").content.decode()
    assert "datos,1080.000000" in file
    assert b"datos,1080.000000" in client.get(f"{address}&format=csv", headers=headers).content
    assert browser.get("/gpu-hours/?group=colour").status_code == 422
    assert client.get(f"{address}&group=colour", headers=headers).status_code == 422


def test_a_member_sees_the_hours_of_the_own_team_alone(june, lea, token_of, client):
    headers = {"Authorization": token_of(lea, "read")}
    address = "/api/v1/gpu-hours/?window=2026-06&group=workload"
    answer = client.get(address, headers=headers).json()
    assert [row["group"] for row in answer["rows"]] == ["ns/w0"]
    assert answer["total"]["held_gpu_hours"] == "1080.000000"
