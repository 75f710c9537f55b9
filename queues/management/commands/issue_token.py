"""Issue an API token for somebody, from the command line."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gpuplatform.common.problems import Rejected
from queues.choices import SCOPES
from queues.models import Team, User
from queues.services import issue_token


class Command(BaseCommand):
    """``manage.py issue_token ian --name laptop --scope read --scope workloads:submit``."""

    help = "Issue an API token; its secret is printed once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take whose token it is, what it may do, and for how long."""
        parser.add_argument("username")
        parser.add_argument("--name", required=True)
        parser.add_argument("--scope", action="append", required=True, choices=SCOPES)
        parser.add_argument("--team", help="limit the token to one team")
        parser.add_argument("--days", type=int, default=90)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Issue the token and print its secret, alone on a line."""
        try:
            user = User.objects.get(username=options["username"])
            team = Team.objects.get(name=options["team"]) if options["team"] else None
            _, secret = issue_token(
                user,
                options["name"],
                options["scope"],
                actor=None,
                team=team,
                ttl=timedelta(days=options["days"]),
            )
        except (User.DoesNotExist, Team.DoesNotExist, Rejected, OverflowError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(secret)
