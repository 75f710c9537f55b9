"""Amounts in forms and bodies are read as quotas are: with digits that everybody reads."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError as FormError
from rest_framework.exceptions import ValidationError as BodyError

from gpuplatform.common.decimals import AmountField, AmountInput, WholeField, WholeInput

FORM = AmountField(max_digits=14, decimal_places=2)
BODY = AmountInput(max_digits=14, decimal_places=2)
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("text", ["1_000", "1_0", "\u0663", "\uff11", "1,5", "0x10", "nan", "1 0"])
def test_odd_digits_are_no_amount_at_any_door(text):
    with pytest.raises(FormError):
        FORM.clean(text)
    with pytest.raises(BodyError):
        BODY.run_validation(text)


@pytest.mark.parametrize("text", ["1000", "-1000.00", " 1e3 ", "+3", ".5"])
def test_plain_digits_are(text):
    assert FORM.clean(text) == BODY.run_validation(text) == Decimal(text.strip())


@pytest.mark.parametrize(
    "text", ["1_0", "\u0663", "\uff11", "1,5", "0x10", "1e3", "1.5", "1 0", "t"]
)
def test_odd_digits_are_no_whole_number_at_any_door(text):
    with pytest.raises(FormError):
        WholeField().clean(text)
    with pytest.raises(BodyError):
        WholeInput().run_validation(text)


@pytest.mark.parametrize("text", ["10", "-10", " 7 ", "+3"])
def test_plain_whole_numbers_are(text):
    assert WholeField().clean(text) == WholeInput().run_validation(text) == int(text)


def test_no_form_or_body_reads_whole_numbers_otherwise():
    """Serializers that validate nothing, but tell the schema what others read, may."""
    other = re.compile(r"\b(forms|serializers)\.IntegerField\b")
    for room in ("finops", "queues", "scheduling", "gpuplatform/doors"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "forms" in path.name or "is_valid(" in text:
                assert not other.search(text), path


def test_no_form_or_body_of_money_reads_decimals_otherwise():
    other = re.compile(r"\b(forms|serializers)\.DecimalField\b")
    for room in ("finops", "queues", "scheduling"):
        for path in (ROOT / room).rglob("*.py"):
            assert not other.search(path.read_text(encoding="utf-8")), path
