"""Make the first admin of a new installation."""

import getpass
import os
import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from gpuplatform.common.problems import Rejected
from queues.choices import Role
from queues.services import create_person, set_platform_role

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
        password = _password()
        try:
            validate_password(password)
            with transaction.atomic():
                person = create_person(
                    options["username"], actor=None, email=options["email"], password=password
                )
                set_platform_role(person, Role.ADMIN, True, actor=None, reason="first_admin")
        except (Rejected, ValidationError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"admin {person.username} created")


def _password() -> str:
    if given := os.environ.get(VARIABLE):
        return given
    if sys.stdin.isatty():
        return getpass.getpass("Password: ")
    return sys.stdin.readline().rstrip("\n")
