"""A fault of the engine is told where operators look first."""

import pytest
from django.urls import reverse

from scheduling.models import Cycle

pytestmark = pytest.mark.django_db


def test_the_overview_names_the_tree_that_was_left_out(platform, ada, signed_in):
    Cycle.objects.create(fence=1, holder="worker", faults={"cohort llm": ["a law is broken"]})
    page = signed_in(ada).get(reverse("overview")).text
    assert "The engine found a fault of its own in cohort llm." in page


def test_the_overview_says_nothing_where_nothing_is_wrong(platform, ada, signed_in):
    assert "fault of its own" not in signed_in(ada).get(reverse("overview")).text
