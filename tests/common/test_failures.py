"""What fails by itself is kept once for each kind, and can be read by those who see everything."""

from datetime import timedelta

import pytest
from celery import shared_task
from django.db import DatabaseError
from django.urls import reverse

from gpuplatform.common import clock, failures
from gpuplatform.common.models import TaskFailure

pytestmark = pytest.mark.django_db


@shared_task(name="common.breaks")
def breaks(words: str) -> None:
    raise ValueError(words)


def test_a_task_that_fails_is_counted_by_what_it_said():
    for words in ("no such host", "no such host", "another"):
        breaks.apply(args=[words])
    rows = TaskFailure.objects.order_by("error").values_list("task", "error", "count")
    assert list(rows) == [
        ("common.breaks", "ValueError: another", 1),
        ("common.breaks", "ValueError: no such host", 2),
    ]


def test_a_dead_database_does_not_hide_what_a_task_said(monkeypatch, caplog):
    def dead(**_fields):
        raise DatabaseError

    monkeypatch.setattr(TaskFailure.objects, "filter", dead)
    failures.note_failure("common.breaks", ValueError("x"))
    assert "could not be kept" in caplog.text


def test_long_words_are_cut_and_old_kinds_forgotten(monkeypatch):
    monkeypatch.setattr(failures, "MOST", 2)
    with clock.at(clock.now() - failures.KEPT - timedelta(minutes=1)):
        failures.note_failure("old", ValueError())
    for name in "abc":
        failures.note_failure(name, ValueError("x" * 1000))
    failures.forget_failures()
    assert sorted(TaskFailure.objects.values_list("task", flat=True)) == ["b", "c"]
    assert {len(row.error) for row in TaskFailure.objects.all()} == {failures.ERROR_LENGTH}


def test_the_page_names_tasks_and_readings_and_is_there_for_readers_of_everything(cast, signed_in):
    failures.note_failure("finops.load_sources", ValueError("no such host"))
    address = reverse("failures")
    page = signed_in(cast.aud).get(address).text
    assert "1 kind of failure of a task, 0 readings that failed" in page
    assert "ValueError: no such host" in page
    file = signed_in(cast.ada).get(address, {"format": "csv"}).text
    assert "task,finops.load_sources,,ValueError: no such host,1," in file
    assert signed_in(cast.lea).get(address).status_code == 404
