"""``manage.py backup FILE``: the whole database in one file, while everything runs."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gpuplatform.common.backups import BackupError, backup


class Command(BaseCommand):
    """Write a backup; the file must not be there yet."""

    help = "Write the whole database to a file, which `restore` reads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file."""
        parser.add_argument("file", type=Path)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write it, and say what it is."""
        try:
            manifest = backup(options["file"])
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{options['file']}: {manifest.database}, {manifest.bytes} bytes")
        self.stdout.write(f"sha256 {manifest.sha256}")
        self.stdout.write(f"audit head {manifest.audit_head or '-'}")
