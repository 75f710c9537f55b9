"""Django's view of the doors."""

from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from scheduling.bench.report import Report


class DoorsConfig(AppConfig):
    """Manifests from outside, and webhooks to the outside."""

    name = "gpuplatform.doors"
    label = "doors"

    def ready(self) -> None:
        """Tell the schema how programs sign in; offer the bench of pages."""
        from gpuplatform.doors import schema  # noqa: F401, PLC0415
        from scheduling.bench.registry import Bench, register  # noqa: PLC0415

        told = "how long the server takes for each page of a large platform"
        register(Bench("pages", told, _take_options, _bench))


def _take_options(parser: ArgumentParser) -> None:
    from gpuplatform.doors.bench_pages.measuring import add_arguments  # noqa: PLC0415

    add_arguments(parser)


def _bench(options: dict[str, Any]) -> "Report":
    from gpuplatform.doors.bench_pages.measuring import run  # noqa: PLC0415

    return run(options)
