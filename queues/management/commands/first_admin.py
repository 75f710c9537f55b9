"""Make the first admin of a new installation."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gpuplatform.common.problems import Rejected
from queues.choices import Role
from queues.management.passwords import read_password
from queues.services import add_person
from queues.specs import PersonSpec

VARIABLE = "GPUPLATFORM_ADMIN_PASSWORD"


class Command(BaseCommand):
    """``manage.py first_admin --username ada``; the password comes in unseen."""

    help = f"Create a platform admin. The password is read from {VARIABLE}, else from input."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take who it is; a password on the command line would stand in the process list."""
        parser.add_argument("--username", required=True)
        parser.add_argument("--email", default="")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create the person and grant the role, both or neither."""
        spec = PersonSpec(options["username"], email=options["email"], roles=(Role.ADMIN.value,))
        try:
            add_person(spec, actor=None, password=read_password(VARIABLE), reason="first_admin")
        except Rejected as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"admin {spec.username} created")
