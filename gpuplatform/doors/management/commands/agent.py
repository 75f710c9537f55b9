"""Run members of gangs as processes of this machine, for a platform elsewhere or here."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from gpuplatform.agent.command import add_arguments, run


class Command(BaseCommand):
    """``manage.py agent --url http://localhost:8000 --token-file FILE --node NAME --gpus N``."""

    help = "Run members of gangs as processes of this machine."
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what the agent takes anywhere."""
        add_arguments(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Be the agent until a signal comes."""
        sys.exit(run(options))
