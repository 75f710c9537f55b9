"""Take the second factor off somebody who lost it, where no admin can sign in to do so."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gpuplatform.common.problems import Rejected
from queues.models import User
from queues.sign_in import remove_factors


class Command(BaseCommand):
    """``manage.py remove_second_factor ada``."""

    help = "Remove somebody's authenticator app and recovery codes; the password stays."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take who it is."""
        parser.add_argument("username")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Remove it, audited."""
        name = options["username"]
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"nobody has the user name {name}")
        try:
            remove_factors(user, actor=None, reason="remove_second_factor")
        except Rejected as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{name} signs in without a second factor now")
