"""Run inside ``manage.py shell``: the world of the matrix, which has something on every page."""

import time_machine
from django.test import override_settings

from queues.models import Team
from tests.conftest import person
from tests.matrix import world as worlds
from tests.scheduling.loop.world import NOON


def keep():
    """Build it at noon of 1 June 2026, let a day go by, and keep it."""
    nobody_answers = override_settings(SOURCE_HOSTS=["localhost:9"], WEBHOOK_HOSTS=["*"])
    with time_machine.travel(NOON, tick=False) as clock, nobody_answers:
        for team in worlds.CODES:
            Team.objects.create(name=team)
        ada = person("ada", role="admin")
        person("eve")
        person("lea", datos="lead")
        worlds.build(ada)
        worlds.run(clock)


keep()
