"""Run inside ``manage.py shell``: the world of the matrix, and a token for each of its callers."""

import json

import time_machine
from django.test import override_settings

from queues.models import Team
from tests.conftest import person
from tests.matrix import world
from tests.matrix.conftest import CAST, tokens_of
from tests.scheduling.loop.world import NOON

with (
    time_machine.travel(NOON, tick=False) as clock,
    override_settings(SOURCE_HOSTS=["localhost:9"], WEBHOOK_HOSTS=["*"], WORLD_KEPT=False),
):
    for team in world.CODES:
        Team.objects.create(name=team)
    people = {name: person(name, **roles) for name, roles in CAST.items()}
    world.build(people["ada"])
    world.run(clock)
print(json.dumps(tokens_of(people)))  # noqa: T201
