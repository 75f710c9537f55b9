"""Why work waits, what would help, who made room, who ended it: as its reader may know."""

import re

import pytest
from django.urls import reverse

from gpuplatform.common import reasons
from queues.models import ClusterQueue, FlavorQuota
from scheduling.loader import load_snapshot
from scheduling.models import Node, Workload
from scheduling.selectors.edits import _effects
from tests.scheduling.loop import world

from .conftest import decide

pytestmark = pytest.mark.django_db


def story(browser, workload):
    return browser.get(reverse("workload", args=[workload.uid])).text


BLOCKED = {"resource": world.GPU, "needed": 4, "available": 1, "where": "h100-sxm"}


@pytest.mark.parametrize(
    ("code", "facts", "words"),
    [
        ("QUOTA_NOMINAL", {}, "once 3 GPUs of what h100-sxm holds come free"),
        ("COHORT_EXHAUSTED", {}, "once 3 GPUs more come free in h100-sxm"),
        ("LENDER_BUSY", {}, "once 3 GPUs more come free in h100-sxm"),
        ("GANG_NO_FIT", {}, "At least 3 GPUs more must come free at the same time"),
        ("TOPOLOGY_NO_DOMAIN", {"fits": 1, "pods": 4}, "once one h100-sxm has room for all"),
        ("FRAGMENTED", {"fits": 1, "pods": 4}, "room for 1 of its 4 pods"),
        ("BEHIND_IN_QUEUE", {"ahead": 2}, "strictly in order"),
    ],
)
def test_every_wait_says_what_would_make_it_fit(code, facts, words):
    assert words in reasons.next_step(code, {**BLOCKED, **facts})


@pytest.mark.parametrize(("nodes", "words"), [(1, "Room on 1 node is"), (3, "Room on 3 nodes is")])
def test_promised_room_counts_its_nodes_as_people_do(nodes, words):
    assert reasons.sentence("PROMISED", {"nodes": nodes, "until": 1_700_000_000}).startswith(words)


def test_who_stands_in_a_strict_line_is_not_said_to_be_looked_at_in_every_cycle(
    platform, ada, signed_in
):
    ClusterQueue.objects.update(queueing_strategy="StrictFIFO")
    behind = world.work("datos", "behind")
    decide()
    behind.refresh_from_db()
    page = story(signed_in(ada), behind)
    assert "it is looked at once those ahead have started" in page
    assert "Looked at again in every cycle" not in page
    assert "Looked at again in every cycle" in story(signed_in(ada), platform.later)


def test_a_gang_without_room_names_the_flavor_where_there_is_one():
    numbers = {**BLOCKED, "available": 0}
    told = reasons.sentence("GANG_NO_FIT", numbers)
    assert "usable h100-sxm nodes have room for 0 GPUs" in told
    assert "usable nodes have room" in reasons.sentence("GANG_NO_FIT", {**numbers, "where": ""})


def test_the_title_quotes_the_limit_that_decides_and_not_the_nominal(platform, lea, signed_in):
    page = story(signed_in(lea), platform.later)
    title = page[page.index("<h1") : page.index("</h1>")]
    assert "may still borrow" in title
    assert "nominal quota" not in title


def test_who_holds_the_quota_is_named_with_a_link_or_not_at_all(platform, ada, lea, signed_in):
    ClusterQueue.objects.get(name="cq-datos").quotas.update(borrowing_limit=None)
    waits = world.work("datos", "waits", pods=2, gpus=4)
    decide()
    waits.refresh_from_db()
    page = story(signed_in(ada), waits)
    assert "Held now by" in page
    assert f'href="{reverse("queue", args=["cq-ia"])}"' in page
    mine = story(signed_in(lea), waits)
    assert "other teams" in mine
    assert "cq-ia" not in mine


def test_what_can_never_start_says_so_and_is_not_wanted(platform, ada, signed_in):
    huge = world.work("datos", "huge", pods=9, gpus=4)
    decide()
    huge.refresh_from_db()
    page = story(signed_in(ada), huge)
    assert "It will not start unless the queue or the request changes." in page
    assert "Looked at again in every cycle" not in page
    overview = signed_in(ada).get(reverse("overview")).text
    assert "14 of 16 GPUs are in use and 4 more are wanted" in overview
    assert "36 GPUs more can never start" in overview


def test_used_and_idle_are_parts_of_one_whole(platform, ada, signed_in):
    """Of 24 GPUs 14 are in use, 6 idle and 4 out of service."""
    for name in ("more-1", "more-2"):
        node = Node.objects.get(name="h100-node-01")
        node.pk, node.name, node.schedulable = None, name, name == "more-1"
        node.save()
    overview = " ".join(
        re.sub(r"<[^>]+>", " ", signed_in(ada).get(reverse("overview")).text).split()
    )
    assert "20 healthy, 4 out of service" in overview
    assert "In use 14 58 %" in overview
    assert "Idle 6 25 %" in overview


def test_an_ended_workload_stood_and_names_who_cancelled_it(platform, lea, signed_in):
    browser = signed_in(lea)
    browser.post(reverse("workload-cancel", args=[platform.train.uid]))
    decide()
    page = story(browser, platform.train)
    assert "Where the gang stood" in page
    assert "Where the gang stands" not in page
    assert "By lea." in page


def test_the_preemptor_tells_how_many_gave_way(platform, ada, ian, signed_in):
    ClusterQueue.objects.filter(name="cq-ia").update(reclaim_within_cohort="Any")
    claim = world.work("ia", "claim", pods=1, gpus=4)
    decide()
    assert Workload.objects.get(pk=platform.train.pk).status == "pending"
    assert "1 borrower was evicted for it: cq-datos" in story(signed_in(ada), claim)
    mine = story(signed_in(ian), claim)
    assert "1 borrower was evicted for it: other teams" in mine
    assert "cq-datos" not in mine


def test_a_cordoned_node_says_who_when_and_why(platform, ada, lea, signed_in):
    path = reverse("node", args=["h100-node-01"])
    signed_in(ada).post(
        reverse("node-cordon", args=["h100-node-01"]),
        {"cordoned": "yes", "reason": "Replacing a fan"},
    )
    page = signed_in(ada).get(path).text
    assert "by ada" in page
    assert "Replacing a fan" in page
    assert reverse("audit") in page


def test_a_lead_who_only_lends_borrows_nothing(platform, ian, lea, signed_in):
    tile = signed_in(ian).get(reverse("overview")).context["tiles"][2]
    assert (tile.value, tile.sub) == ("0", "in 0 open loans")
    quota, _used, tile = signed_in(lea).get(reverse("overview")).context["tiles"][:3]
    assert (tile.value, tile.sub) == ("4", "in 1 open loan")
    assert quota.sub == "0 of them lent"


def test_the_list_speaks_of_work_in_vain_as_the_overview_does(platform, ada, signed_in):
    world.work("datos", "huge", pods=9, gpus=4)
    decide()
    page = signed_in(ada).get(reverse("workloads")).text
    assert "1 workload waits, 1 more can never start, 2 hold their nodes" in page
    marked = [row for row in page.split("<tr")[1:] if "can never start" in row]
    assert len(marked) == 1
    assert "huge" in marked[0]
    assert '<td data-label="Position" class="num">1</td>' in page  # cards show it, too


def test_draining_a_queue_is_told_with_all_that_it_throws_away(platform):
    for number in range(7):
        world.work("ia", f"small-{number}", gpus=1)
    ClusterQueue.objects.filter(name="cq-ia").update(reclaim_within_cohort="Any")
    FlavorQuota.objects.update(nominal=16)
    Node.objects.update(allocatable={"nvidia.com/gpu": 16, "pods": 99})
    decide()
    before = load_snapshot()
    ClusterQueue.objects.filter(name="cq-ia").update(stop_policy="HoldAndDrain")
    (told,) = (d for d in _effects(before, load_snapshot()) if d.code == "EDIT_EVICTS")
    sentence = told.as_json()["detail"]
    assert "evicts 8: ns-ia/secret, ns-ia/small-0" in sentence
    assert sentence.endswith("and 3 more. 0.0 GPU-hours of work are lost.")
