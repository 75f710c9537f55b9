"""Pages name the devices that a pod got, and who stands on each."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from scheduling.models import Node
from scheduling.selectors.devices import numbers_of
from tests.scheduling.loop import world

from .conftest import decide

pytestmark = pytest.mark.django_db
ONE = "h100-node-01"


@pytest.fixture
def islands(db):
    world.nodes(1, gpus=8)
    Node.objects.update(annotations={"gpuplatform.io/gpu-islands": "0-3,4-7"})
    world.queue("datos", 8)
    world.queue("ia", 8)
    near = world.work("datos", "near", gpus=4, topology={"device_locality": "require-island"})
    world.work("ia", "two", pods=2, gpus=1)
    decide()
    return near


def test_a_node_shows_who_stands_on_which_gpu(islands, ada, signed_in):
    page = signed_in(ada).get(reverse("node", args=[ONE])).text

    assert "GPU by GPU" in page
    table = page[page.index('id="h-gpus"') :]
    assert table.count("ns-datos/near") == 4
    assert table.count("ns-ia/two") == 2
    assert "nobody" in table
    assert ">B<" in table


def test_what_others_run_on_a_gpu_is_not_named(islands, lea, signed_in):
    page = signed_in(lea).get(reverse("node", args=[ONE])).text

    table = page[page.index('id="h-gpus"') :]
    assert "ns-ia/two" not in table
    assert "another team" in table


def test_a_workload_names_its_gpus(islands, ada, signed_in):
    page = signed_in(ada).get(reverse("workload", args=[islands.uid])).text

    assert "GPU numbers, by pod" in page
    assert "<td>0-3</td>" in page


def test_where_gpus_are_alike_nobody_is_told_numbers(ada, signed_in):
    world.nodes(1, gpus=8)
    world.queue("datos", 8)
    work = world.work("datos", "any", gpus=4)
    decide()

    assert "GPU by GPU" not in signed_in(ada).get(reverse("node", args=[ONE])).text
    assert "GPU numbers" not in signed_in(ada).get(reverse("workload", args=[work.uid])).text


def test_parts_of_a_gpu_show_what_is_left_of_time_and_memory(ada, signed_in):
    world.nodes(1)
    number, memory = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
    offered = {"cpu": 8000, number: 10, memory: 24_576, "volcano.sh/vgpu-cores": 100, "pods": 110}
    Node.objects.update(allocatable=offered)
    asked = {number: 1, memory: 6144, "volcano.sh/vgpu-cores": 25}
    world.work("datos", "part", pods=2, requests=asked, queue_name="")
    decide()

    page = signed_in(ada).get(reverse("node", args=[ONE])).text

    table = page[page.index('id="h-gpus"') :]
    assert "50 %" in table
    assert "12288 of 24576 MiB" in table
    assert "(2 pods)" in table


def test_the_devices_of_a_node_cost_a_fixed_number_of_queries(islands, ada, signed_in):
    client, address = signed_in(ada), reverse("node", args=[ONE])
    client.get(address)
    with CaptureQueriesContext(
        connection,
    ) as few:
        client.get(address)
    world.work("datos", "more", gpus=1)
    world.work("ia", "other", gpus=1)
    decide()
    with CaptureQueriesContext(connection) as many:
        client.get(address)

    assert len(many) == len(few)


@pytest.mark.parametrize(
    ("seats", "text"),
    [
        ([], ""),
        ([[0, 1, 2, 3], [4, 5, 6, 7]], "0-3; 4-7"),
        ([[0], [0], [1]], "0 x2; 1"),
        ([[5, 1, 2]], "1-2, 5"),
    ],
)
def test_numbers_are_written_in_short(seats, text):
    assert numbers_of(seats) == text
