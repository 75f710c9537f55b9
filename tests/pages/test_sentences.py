"""The sentence at the top of a page says what its rows say: by flavor, and with what is kept."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from gpuplatform.common.bars import QuotaBar
from queues.models import FlavorQuota, ResourceFlavor
from scheduling.models import Node
from scheduling.selectors import findings
from scheduling.selectors.loans import OpenLoan
from scheduling.selectors.nodes import Held, NodeRow
from tests.scheduling.loop import world

from .conftest import decide

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("bars", "words"),
    [
        ([], "cq has no GPU quota"),
        ([QuotaBar("h100", 8, 6)], "cq uses 6 of its 8 GPUs"),
        ([QuotaBar("h100", 8, 2, lent=4)], "cq uses 2 of its 8 GPUs and lends 4"),
        (
            [QuotaBar("h100", 8, 12, borrowed=4)],
            "cq holds 12 GPUs and borrows 4 h100 above its own 8",
        ),
        (
            [QuotaBar("h100", 8, 12, borrowed=4, alone=True)],
            "cq holds 12 GPUs: 4 h100 above its own 8",
        ),
        (
            [QuotaBar("h100", 64, 32), QuotaBar("a100", 32, 34, borrowed=2)],
            "cq holds 66 GPUs (32 h100, 34 a100) and borrows 2 a100 above its own 32",
        ),
        (
            [QuotaBar("h100", 0, 1, borrowed=1), QuotaBar("a100", 2, 3, borrowed=1)],
            (
                "cq holds 4 GPUs (1 h100, 3 a100) and borrows 1 h100 without any of its own,"
                " 1 a100 above its own 2"
            ),
        ),
    ],
    ids=str,
)
def test_a_queue_is_judged_flavor_by_flavor(bars, words):
    assert findings.queue_sentence("cq", bars) == words


def test_open_loans_are_counted_by_queue_and_flavor_like_on_every_page():
    now = datetime(2026, 11, 30, tzinfo=UTC)
    loans = [
        OpenLoan(queue, None, flavor, gpus, now, ())
        for queue, flavor, gpus in (("a", "h100", 4), ("a", "a100", 2), ("b", "h100", 1))
    ]
    assert findings.loans_sentence(loans) == "2 queues borrow 7 GPUs now, in 3 open loans"
    assert findings.loans_sentence(loans[2:]) == "1 queue borrows 1 GPU now, in 1 open loan"
    assert findings.loans_sentence([]) == "Nothing is on loan now"


@pytest.mark.parametrize(
    ("reserved", "words"),
    [
        ((0, 0), "12 of 16 GPUs are free"),
        ((1, 0), "12 of 16 GPUs are free; 1 of them is kept for a gang that waits"),
        ((4, 8), "12 of 16 GPUs are free; 12 of them are kept for gangs that wait"),
        ((99, 0), "12 of 16 GPUs are free; 4 of them are kept for gangs that wait"),
    ],
)
def test_gpus_that_are_kept_for_a_gang_are_not_simply_free(reserved, words):
    used = Held(None, None, 4, 1)
    rows = [
        NodeRow(Node(name=str(n)), "h100", "", "", 8, held, reserved=kept)
        for n, (held, kept) in enumerate(zip([(used,), ()], reserved, strict=True))
    ]
    assert findings.nodes_sentence(rows, []) == words


def test_what_a_cohort_keeps_and_nobody_uses_stands_unused_too(platform, ada, signed_in):
    FlavorQuota.objects.create(
        cohort=platform.datos.cohort, flavor=world.FLAVOR, resource=world.GPU, nominal=16
    )
    page = signed_in(ada).get(reverse("queues")).text
    assert "4 GPUs of h100-sxm are on loan while 18 stand unused" in page
    assert "16 of the cohort itself: 0 lent, 16 idle" in page


def test_free_gpus_of_two_flavors_are_never_one_gang(platform, ada, signed_in):
    ResourceFlavor.objects.create(name="a100", node_labels={"accelerator": "a100"})
    has = {world.GPU: 8, "cpu": 64_000, "memory": 2**40}
    Node.objects.create(name="a100-01", labels={"accelerator": "a100"}, allocatable=has)
    decide()
    answer = signed_in(ada).get(reverse("nodes"))
    assert "10 of 24 GPUs are free: 8 a100, 2 h100-sxm" in answer.text
    pieces = [view.piece for view in answer.context["views"]]
    gangs = {piece.flavor: piece.gangs[1]["cluster"] for piece in pieces}
    assert gangs == {"a100": 8, "h100-sxm": 2}


@pytest.mark.parametrize(
    ("borrowed", "only_own", "words"),
    [
        (1, False, "1 GPU of h100 is on loan and none stands unused"),
        (2, False, "2 GPUs of h100 are on loan and none stands unused"),
        (2, True, "Your queues borrow 2 GPUs of h100 and use all of their own"),
    ],
)
def test_what_is_on_loan_is_told_of_what_the_reader_sees(borrowed, only_own, words):
    bars = [QuotaBar("cq", 8, 8 + borrowed, borrowed=borrowed)]
    assert findings.queues_sentence(bars, "h100", world.GPU, only_own=only_own) == words


def test_a_teams_overview_tells_its_own_use_from_what_it_borrows(platform, lea, signed_in):
    """12 held of a quota of 8 are 8 of its own and 4 borrowed; nothing of its own is idle."""
    page = signed_in(lea).get(reverse("overview"))
    assert "Your teams use 8 of their 8 GPUs, borrow 4 and want 4 more" in page.text
    assert "8 of the quota (100 %), 4 borrowed" in page.text
    assert "It decided, for all teams" in page.text
    numbers = page.context["page"].numbers
    assert numbers.used - numbers.borrowed + numbers.idle + numbers.lent == numbers.total


def test_a_cohorts_page_tells_a_team_that_it_speaks_of_its_own_queues(
    platform, ada, lea, signed_in
):
    address = reverse("cohort", args=["llm"])
    own = signed_in(lea).get(address).text
    assert "llm: 1 queue of yours lends and borrows here" in own
    assert "your queues: 12 in use, 8 promised to them" in own
    whole = signed_in(ada).get(address).text
    assert "llm: 2 queues lend to each other" in whole
    assert "14 in use, 16 promised to queues" in whole


def test_a_queue_that_changed_hands_does_not_name_the_work_of_its_former_team(
    platform, lea, ada, signed_in
):
    """IA's job still runs in the queue that is datos' now: its amount is told, not its name."""
    platform.ia.team = platform.datos.team
    platform.ia.save()
    address = reverse("queue", args=["cq-ia"])
    page = signed_in(lea).get(address).text
    assert "secret" not in page
    assert "1 workload of other teams holds 2 GPUs here" in page
    assert "secret" in signed_in(ada).get(address).text


def test_quota_without_room_on_nodes_is_not_told_as_if_it_were_to_be_had(platform, ada, signed_in):
    """2 GPUs of quota are unused; a cordon leaves no room for them, and the alert names it."""
    address = reverse("queues")
    assert "but nodes have room" not in signed_in(ada).get(address).text
    Node.objects.update(schedulable=False)
    page = signed_in(ada).get(address).text
    assert "while 2 stand unused, but nodes have room for 0 only" in page
    assert "16 GPUs more are on nodes that take no pods: h100-node-01" in page
    assert "back into service" in page
