"""Tiers and domains: what each holds, and the most that is free in one of them."""

import csv
import io

import pytest
from django.urls import reverse

from queues.models import ResourceFlavor, Topology, TopologyLevel
from scheduling.models import Node
from tests.pages.conftest import decide
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db
PATH = "/topology/"
RACK, BLOCK = "example.org/rack", "example.org/block"


@pytest.fixture
def racks(db):
    """Two blocks: three racks of two nodes of 4 GPUs, one node without a rack; 12 GPUs held."""
    world.nodes(7, gpus=4)
    topology = Topology.objects.create(name="halls")
    for position, label in enumerate((BLOCK, RACK, "kubernetes.io/hostname")):
        TopologyLevel.objects.create(topology=topology, position=position, node_label=label)
    ResourceFlavor.objects.update(topology="halls")
    places = [("a", "a1"), ("a", "a1"), ("a", "a2"), ("a", "a2"), ("b", "b1"), ("b", "b1")]
    for node, place in zip(Node.objects.order_by("name"), [*places, ("b", "")], strict=True):
        node.labels |= {BLOCK: place[0], "kubernetes.io/hostname": node.name}
        node.labels |= {RACK: place[1]} if place[1] else {}
        node.save()
    world.queue("datos", 28)
    world.work("datos", "train", pods=3, gpus=4)
    decide()
    return {node.name: node for node in Node.objects.all()}


def cells(answer):
    rows = csv.DictReader(io.StringIO(b"".join(answer).decode()))
    return {(row["level"], row["domain"]): row for row in rows}


def test_every_tier_says_capacity_and_the_most_that_is_free_in_one_domain(racks, ada, signed_in):
    browser = signed_in(ada)
    tiers = {tier["level"]: tier for tier in browser.get(f"{PATH}?format=json").json()}
    assert list(tiers) == [BLOCK, RACK, "kubernetes.io/hostname"]
    assert [tier["gpus"] for tier in tiers.values()] == [28, 24, 24]
    assert tiers[RACK]["nodes_outside"] == 1
    for tier in tiers.values():
        free = {one["domain"]: one["free"] for one in tier["domains"]}
        assert sum(free.values()) == tier["free"]
        assert tier["largest_free"] == max(free.values()) == free[tier["largest_domain"]]
    # A whole rack is left: two pods of 4 fit in one, and one on a node.
    assert (tiers[RACK]["largest_free"], tiers[RACK]["largest_gangs"]["4"]) == (8, 2)
    assert tiers["kubernetes.io/hostname"]["largest_gangs"]["4"] == 1


def test_nodes_out_of_service_have_capacity_and_nothing_free(racks, ada, signed_in):
    browser = signed_in(ada)
    before = cells(browser.get(f"{PATH}?format=csv"))
    idle = next(d for (level, d), row in before.items() if level == RACK and row["free"] == "8")
    names = [n.name for n in racks.values() if n.labels.get(RACK) == idle.split("/")[1]]
    Node.objects.filter(name=names[0]).update(schedulable=False)
    after = cells(browser.get(f"{PATH}?format=csv"))[RACK, idle]
    assert (after["gpus"], after["free"], after["nodes_out"]) == ("8", "4", "1")


def test_page_and_file_say_the_same_and_a_tier_narrows_both(racks, ada, signed_in):
    browser = signed_in(ada)
    page = browser.get(PATH, {"tier": "rack"})
    assert [tier.level for tier in page.context["tiers"]] == [RACK]
    shown = {domain.name: domain.free for domain in page.context["tiers"][0].domains}
    filed = cells(browser.get(f"{PATH}?tier=rack&format=csv"))
    assert {domain: int(row["free"]) for (_level, domain), row in filed.items()} == shown
    largest = [domain for (_level, domain), row in filed.items() if row["is_largest"] == "true"]
    assert largest == [page.context["tiers"][0].largest.name]
    assert "1 node outside" in page.text
    nothing = browser.get(PATH, {"tier": "shelf"})
    assert "Nothing here matches the filter" in nothing.text


def test_the_page_of_a_topology_shows_its_tiers(racks, lea, signed_in):
    page = signed_in(lea).get(reverse("topology", args=["halls"]))
    assert [tier.words for tier in page.context["tiers"]] == ["block", "rack", "node"]


def test_without_a_topology_it_says_what_one_is(ada, lea, signed_in, db):
    assert reverse("topology-new") in signed_in(ada).get(PATH).text
    assert reverse("topology-new") not in signed_in(lea).get(PATH).text
