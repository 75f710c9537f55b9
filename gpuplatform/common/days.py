"""Days and instants in forms and bodies, within what every door takes."""

from datetime import date
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from gpuplatform.common.periods import FIRST, LAST, is_day


def check_day(value: date) -> None:
    """Refuse a day, or an instant, at an end of the calendar.

    Raises:
        ValidationError: it lies outside.
    """
    if not is_day(value):
        words = _("It must be from %(low)s to %(high)s.")
        numbers = {"low": FIRST.isoformat(), "high": LAST.isoformat()}
        raise ValidationError(words, code="OUT_OF_RANGE", params=numbers)


class DayField(forms.DateField):
    """A day in a form."""

    default_validators = [check_day]


class InstantField(forms.DateTimeField):
    """A day, or a day and time, in UTC, in a form."""

    default_validators = [check_day]
    widget = forms.DateTimeInput(
        format="%Y-%m-%d %H:%M", attrs={"placeholder": "2026-06-01 00:00"}
    )


class DayInput(serializers.DateField):
    """A day in a body."""

    default_validators: list[Any] = [check_day]


class InstantInput(serializers.DateTimeField):
    """An instant in a body."""

    default_validators: list[Any] = [check_day]
