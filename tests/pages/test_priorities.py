"""Named priorities on their page: the work that has them, and an editor with the usual manners."""

import pytest
from django.urls import reverse

from queues.models import PriorityClass
from scheduling.models import Workload

pytestmark = pytest.mark.django_db
REASON = "Agreed in the June review"


@pytest.fixture
def urgent():
    return PriorityClass.objects.create(name="urgent", value=100, description="Outages only")


def test_the_list_counts_the_work_that_its_reader_sees(platform, urgent, ada, ian, signed_in):
    Workload.objects.update(priority_class="urgent")
    PriorityClass.objects.create(name="node-critical", kind="pod", value=2_000)
    rows = {
        who: [
            (row.row.name, row.waiting, row.running, row.gpus)
            for row in signed_in(who).get(reverse("priority-classes")).context["rows"]
        ]
        for who in (ada, ian)
    }
    assert rows[ada] == [("node-critical", None, None, None), ("urgent", 1, 2, 14)]
    assert rows[ian] == [("node-critical", None, None, None), ("urgent", 0, 1, 2)]
    file = signed_in(ada).get(reverse("priority-classes"), {"format": "csv"}).text
    assert "urgent,workload,100,false,Outages only,1,2,14" in file


def test_a_class_is_made_and_changed_and_stale_edits_are_told(urgent, ada, signed_in):
    browser = signed_in(ada)
    made = browser.post(
        reverse("priority-class-new"), {"name": "low", "kind": "workload", "value": "-5"}
    )
    assert made.url == reverse("priority-classes")
    edit = reverse("priority-class-edit", args=["workload", "urgent"])
    version = browser.get(edit).context["form"]["version"].value()
    change = {"value": "200", "version": version, "reason": REASON}
    assert browser.post(edit, change).status_code == 302
    assert PriorityClass.objects.get(name="urgent").value == 200
    assert browser.post(edit, change | {"value": "300"}).status_code == 412
    assert PriorityClass.objects.get(name="urgent").value == 200


@pytest.mark.parametrize(
    "change",
    [{"value": "much"}, {"value": "9999999999999"}, {"name": "Not so"}, {"name": "urgent"}],
)
def test_what_cannot_be_is_said_at_its_field(urgent, ada, signed_in, change):
    typed = {"name": "low", "kind": "workload", "value": "-5"} | change
    answer = signed_in(ada).post(reverse("priority-class-new"), typed)
    assert answer.status_code == 422
    assert answer.context["problems"]
    assert PriorityClass.objects.count() == 1
