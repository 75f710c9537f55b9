"""Django's view of the room."""

from django.apps import AppConfig


class FinopsConfig(AppConfig):
    """COST: prices, metering, bills."""

    name = "finops"

    def ready(self) -> None:
        """Put the cost of the month on the overview."""
        from finops.tiles import cost_tile  # noqa: PLC0415  # models are not there before
        from gpuplatform.common.pages import register_tile  # noqa: PLC0415

        register_tile(cost_tile)
