"""Days at the ends of the calendar: refused at their field by every door, and no failure."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django import forms
from django.urls import get_resolver
from rest_framework import serializers

from finops.price_lists import VERSION, read_price_list
from finops.spans import BadSpanError, span_of
from gpuplatform.common.days import check_day
from gpuplatform.common.manifests import Document
from queues.models import QuotaRequest
from queues.quota_requests import AskForm

FAR = ("0001-01-01", "9999-12-31")
ROOMS = ("finops", "queues")
DAYS = (forms.DateField, forms.DateTimeField, serializers.DateField, serializers.DateTimeField)


def below(base: type) -> Iterator[type]:
    for cls in base.__subclasses__():
        yield cls
        yield from below(cls)


def test_every_form_and_body_refuses_days_at_the_ends_of_the_calendar() -> None:
    assert get_resolver().url_patterns, "all doors are imported"
    found, loose = 0, []
    for cls in {*below(forms.BaseForm), *below(serializers.Serializer)}:
        if not cls.__module__.startswith(ROOMS):
            continue
        told = getattr(cls, "base_fields", None) or getattr(cls, "_declared_fields", {})
        for name, field in told.items():
            if isinstance(field, DAYS) and not getattr(field, "read_only", False):
                found += 1
                loose += [] if check_day in field.validators else [f"{cls.__name__}.{name}"]
    assert found >= 15
    assert [one for one in loose if not one.endswith("_at")] == []  # those are told, not read


@pytest.mark.parametrize("day", FAR)
def test_a_quota_request_has_its_mistake_at_the_last_day(day: str) -> None:
    form = AskForm({"reason": "for the exam of July", "last_day": day})
    assert not form.is_valid()
    assert form.errors.as_data()["last_day"][0].code == "OUT_OF_RANGE"


def test_the_last_day_that_is_taken_can_be_counted_on_from(settings: Any) -> None:
    settings.BILLING_TIME_ZONE = "Pacific/Kiritimati"
    form = AskForm({"reason": "for the exam of July", "last_day": "9998-12-31"})
    assert form.is_valid()
    until = form.until()
    assert until is not None
    assert until.date() == date(9999, 1, 1)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:00:00-05:00"])
def test_instants_in_texts_that_no_zone_can_be_told_of_are_none(text: str) -> None:
    now = datetime(2026, 6, 1, tzinfo=UTC)
    with pytest.raises(BadSpanError):
        span_of(f"{text},{text[:11]}01:30:00+05:00", now, "UTC")
    prices = {"prices": [{"subject": "*", "amount": "1", "validFrom": text}]}
    body = {"apiVersion": VERSION, "kind": "PriceList", "metadata": {"name": "x"}, "spec": prices}
    found = read_price_list(Document(0, 1, VERSION, "PriceList", "x", "", body)).diagnostics
    assert [(d.code, d.path) for d in found] == [("BAD_VALUE", "spec.prices[0].validFrom")]


PRICE = {"unit": "gpu_hour", "subject": "*", "amount": "1", "currency": "EUR", "note": "for ever"}


@pytest.mark.django_db
@pytest.mark.parametrize("day", FAR)
def test_rest_and_page_answer_with_the_field(  # noqa: PLR0917 - fixtures
    day: str, fin: Any, lea: Any, send: Any, signed_in: Any, three_teams: None
) -> None:
    body = {**PRICE, "valid_from": f"{day}T00:00:00Z"}
    answer = send(fin, "POST", "/api/v1/prices/", body)
    told = [(e["pointer"], e["code"]) for e in answer.json()["errors"]]
    assert (answer.status_code, told) == (400, [("/valid_from", "OUT_OF_RANGE")])
    form = {"reason": "for the exam of July", "last_day": day}
    page = signed_in(lea).post("/requests/new/", form)
    assert page.status_code == 422
    assert "It must be from 1900-01-01 to 9998-12-31." in page.text
    assert not QuotaRequest.objects.exists()
