"""Django's view of the room."""

from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from finops.guards import put_up

if TYPE_CHECKING:
    from scheduling.bench.report import Report


class FinopsConfig(AppConfig):
    """COST: prices, metering, bills."""

    name = "finops"

    def ready(self) -> None:
        """Put the month's cost on the overview, guards around closed months; offer prices."""
        from finops import alarms  # noqa: PLC0415
        from finops.budgets.check import BudgetCheck  # noqa: PLC0415
        from finops.gpu_use import measured_use  # noqa: PLC0415
        from finops.price_facts import GpuHours  # noqa: PLC0415
        from finops.replaying.showing import TOPIC, replay_feed  # noqa: PLC0415
        from finops.tiles import cost_tile  # noqa: PLC0415  # models are not there before
        from gpuplatform.common.live import register_feed, register_topics  # noqa: PLC0415
        from gpuplatform.common.pages import register_tile  # noqa: PLC0415
        from scheduling import alerting  # noqa: PLC0415
        from scheduling.bench.registry import Bench, register  # noqa: PLC0415
        from scheduling.checks import register as register_check  # noqa: PLC0415
        from scheduling.measuring import register_use  # noqa: PLC0415
        from scheduling.pricing import register_prices  # noqa: PLC0415

        register_tile(cost_tile)
        register(Bench("bill", "a month of many workloads to its bill", _take_options, _bench))
        register_check(BudgetCheck())
        register_prices(GpuHours())
        register_use(measured_use)
        alerting.register(alarms.OWNER, alarms.KINDS)
        register_topics(TOPIC)
        register_feed("replay", replay_feed())
        post_migrate.connect(put_up, sender=self)


def _take_options(parser: ArgumentParser) -> None:
    from finops.bench import add_arguments  # noqa: PLC0415  # models are not there before

    add_arguments(parser)


def _bench(options: dict[str, Any]) -> "Report":
    from finops.bench import run  # noqa: PLC0415

    return run(options)
