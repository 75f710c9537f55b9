"""Make somebody who may sign in, with roles and teams."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from gpuplatform.common.problems import Rejected
from queues.choices import Role, TeamRole
from queues.management.passwords import read_password
from queues.models import Team
from queues.services import add_person, set_membership
from queues.specs import PersonSpec

VARIABLE = "GPUPLATFORM_PERSON_PASSWORD"
REASON = "add_person"


class Command(BaseCommand):
    """``manage.py add_person lea --name "Lea Ortiz" --team datos:lead``."""

    help = f"Create a person. The password is read from {VARIABLE}, else from input."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take who it is and where they belong."""
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="first and last name")
        parser.add_argument("--email", default="")
        parser.add_argument("--role", action="append", default=[], choices=Role.values)
        parser.add_argument("--team", action="append", default=[], metavar="TEAM[:lead]")
        parser.add_argument(
            "--tokens-only", action="store_true", help="a service account without a password"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create the person with all roles, or nobody."""
        first, _, last = options["name"].strip().partition(" ")
        roles = tuple(sorted(set(options["role"])))
        spec = PersonSpec(options["username"], first, last.strip(), options["email"], roles=roles)
        password = None if options["tokens_only"] else read_password(VARIABLE)
        try:
            with transaction.atomic():
                user = add_person(spec, actor=None, password=password, reason=REASON)
                for place in options["team"]:
                    name, _, role = place.partition(":")
                    team = Team.objects.get(name=name)
                    set_membership(team, user, role or TeamRole.MEMBER.value, None, REASON)
        except (Team.DoesNotExist, Rejected) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{user.username} created")
