"""``manage.py export_manifests``: everything as documents, as ``import_manifests`` takes them."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from gpuplatform.common.yamls import dumped
from gpuplatform.doors.exporter import KINDS, OTHER_KINDS, export_everything, in_files


class Command(BaseCommand):
    """Print all documents, or write them as files of which each is one import."""

    help = "Export promises, machines, prices and live work as Kueue's YAML."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--kind",
            action="append",
            default=[],
            choices=[*KINDS, *OTHER_KINDS],
            help="only these",
        )
        parser.add_argument(
            "-o", "--output", type=Path, metavar="FOLDER", help="write files of up to 1 MiB there"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Export; files that stand in the folder already are left alone and refused."""
        documents = export_everything(options["kind"])
        folder: Path | None = options["output"]
        if folder is None:
            for text in dumped(documents):
                self.stdout.write(text, ending="")
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise CommandError(_("{folder} is not empty.").format(folder=folder))
            for number, text in enumerate(in_files(documents), 1):
                path = folder / f"{number:04}.yaml"
                path.write_text(text, encoding="utf-8")
                self.stdout.write(str(path))
        except OSError as error:
            raise CommandError(f"{folder}: {error.strerror}") from error
