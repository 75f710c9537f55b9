"""Django's view of the room."""

from django.apps import AppConfig


class QueuesConfig(AppConfig):
    """PROMISED: teams, quotas, cohorts, queues."""

    name = "queues"
