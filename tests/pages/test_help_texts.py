"""What a form will refuse stands beside its field before anybody types."""

import re

import pytest
from django.core.validators import MinLengthValidator
from django.forms import BaseForm
from django.urls import reverse

from queues.forms import CohortForm, FlavorForm, QueueForm, TeamForm, TopologyForm
from queues.forms.people import NewPasswordForm
from queues.quota_edits import ReasonForm as QuotaReasonForm
from scheduling.forms import CheckForm, ForgetForm, ReasonForm

EDITORS = (CohortForm, FlavorForm, QueueForm, TeamForm, TopologyForm)
FORMS: tuple[type[BaseForm], ...] = (
    *EDITORS,
    *(NewPasswordForm, QuotaReasonForm, ReasonForm, ForgetForm, CheckForm),
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.__module__}.{form.__name__}")
def test_a_least_length_is_said_before_it_is_missed(form: type[BaseForm]) -> None:
    found = 0
    for name, field in form.base_fields.items():
        for validator in field.validators:
            if isinstance(validator, MinLengthValidator):
                found += 1
                words = f"{validator.limit_value} characters"
                assert words in str(field.help_text).replace("At least ", ""), name
    assert found == 1


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["queue-new", "cohort-new", "flavor-new", "topology-new"])
def test_a_reason_that_may_be_left_out_says_how_long_it_is_where_it_is_not(page, ada, signed_in):
    browser = signed_in(ada)
    said = re.sub(r"\s+", " ", browser.get(reverse(page)).text)
    assert "None, or at least 10 characters; kept in the audit log" in said
    short = browser.post(reverse(page), {"name": "a", "reason": "short"})
    assert "at least 10 characters (it has 5)" in short.text
