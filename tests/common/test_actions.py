"""The audit trail in words: every action that the platform writes has them."""

import re

import pytest
from django.apps import apps

from gpuplatform.common.actions import NOUNS, SENTENCES, VERBS, action_words
from queues.models.fields import Versioned
from tests.house.test_rooms import ROOMS, ROOT, sources

WRITTEN = re.compile(r"record\(\s*\w+,\s*\"([a-z_]+\.[a-z_]+)\"")


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("cluster_queue.created", "Queue created"),
        ("team.updated", "Team changed"),
        ("node.uncordoned", "Node opened again"),
        ("membership.set", "Member's role set"),
        ("quota.melted_down", "Quota melted down"),
    ],
)
def test_an_action_is_said_in_words(action, words):
    assert action_words(action) == words


def test_every_kind_of_object_that_is_written_with_versions_has_a_noun():
    kinds = {
        str(model._meta.verbose_name).replace(" ", "_").lower()  # noqa: SLF001
        for model in apps.get_models()
        if issubclass(model, Versioned)
    }
    assert kinds <= set(NOUNS)


def test_every_action_that_stands_in_a_service_has_words():
    found = {
        action
        for path in sources(*ROOMS)
        if "services" in path.parts or path.name in {"services.py", "billing.py"}
        for action in WRITTEN.findall((ROOT / path).read_text())
    }
    assert "price.set" in found
    named = {*SENTENCES, *(f"{noun}.{verb}" for noun in NOUNS for verb in VERBS)}
    assert found <= named
