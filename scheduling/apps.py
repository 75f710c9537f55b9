"""Django's view of the room."""

from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """RUNNING: nodes, workloads, the cycle that admits and places."""

    name = "scheduling"
