"""The sentence at the top of a page says what its rows say: by flavor, and with what is kept."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from gpuplatform.common.bars import QuotaBar
from queues.models import FlavorQuota, ResourceFlavor
from scheduling.models import Node
from scheduling.selectors import findings
from scheduling.selectors.loans import OpenLoan
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
            [QuotaBar("h100", 64, 32), QuotaBar("a100", 32, 34, borrowed=2)],
            "cq holds 66 GPUs and borrows 2 a100 above its own 32",
        ),
        (
            [QuotaBar("h100", 0, 1, borrowed=1), QuotaBar("a100", 2, 3, borrowed=1)],
            "cq holds 4 GPUs and borrows 1 h100 without any of its own, 1 a100 above its own 2",
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
