"""Django's view of the room."""

from django.apps import AppConfig


class FinopsConfig(AppConfig):
    """COST: prices, metering, bills."""

    name = "finops"
