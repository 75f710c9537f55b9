"""``manage.py restore FILE``: the database as a backup has it, or as it was."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from gpuplatform.common.backups import BackupError, restore
from gpuplatform.common.backups.running import missing_migrations
from gpuplatform.common.management.commands.up import only_one


class Command(BaseCommand):
    """Restore a backup in one piece; web, workers and beat must be stopped."""

    help = "Make the database what a backup holds. Stop web, workers and beat first."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file and the word that what is there may go."""
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--replace", action="store_true", help="throw away what is in the database"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Restore, and say what is left to do."""
        try:
            with only_one(settings.HOME / "up.lock"):
                manifest = restore(options["file"], replace=options["replace"])
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"restored: {manifest.version} of {manifest.made_at}")
        self.stdout.write(f"audit head {manifest.audit_head or '-'}")
        if missing := missing_migrations(manifest):
            self.stdout.write(f"{len(missing)} migrations are missing: run manage.py migrate")
