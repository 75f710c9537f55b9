"""Django's view of the room."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from finops.guards import put_up


class FinopsConfig(AppConfig):
    """COST: prices, metering, bills."""

    name = "finops"

    def ready(self) -> None:
        """Put the month's cost on the overview, guards around closed months; offer prices."""
        from finops.price_facts import prices_now  # noqa: PLC0415
        from finops.tiles import cost_tile  # noqa: PLC0415  # models are not there before
        from gpuplatform.common.pages import register_tile  # noqa: PLC0415
        from scheduling.pricing import register_prices  # noqa: PLC0415

        register_tile(cost_tile)
        register_prices(prices_now)
        post_migrate.connect(put_up, sender=self)
