"""``manage.py import_manifests FILE...``: manifests in, as over REST."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from gpuplatform.common.manifests import MAX_BYTES
from gpuplatform.common.problems import Rejected
from gpuplatform.doors.importer import import_documents
from gpuplatform.doors.report import ImportReport


class Command(BaseCommand):
    """Import files in order; exit 1 when something was rejected."""

    help = "Import Kueue, Volcano, Kubernetes, LiteLLM and OpenCost manifests."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("files", nargs="+", metavar="FILE", help="a YAML or JSON file, or -")
        parser.add_argument("--atomic", action="store_true", help="all of a file or nothing")
        parser.add_argument("--dry-run", action="store_true", help="decide, keep nothing")
        parser.add_argument("--json", action="store_true", help="print the reports as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import every file; a file that cannot be read stops nothing but itself."""
        reports, refused = {}, False
        for name in options["files"]:
            try:
                reports[name] = import_documents(
                    _text(name), actor=None, atomic=options["atomic"], dry_run=options["dry_run"]
                )
            except Rejected as error:
                refused = True
                self.stderr.write(
                    "\n".join(f"{name}: {p.path} {p.code}: {p.message}" for p in error.problems)
                )
        if options["json"]:
            shown = {name: report.as_json() for name, report in reports.items()}
            self.stdout.write(json.dumps(shown, indent=2))
        else:
            for name, report in reports.items():
                self._print(name, report)
        if refused or any(report.rejected for report in reports.values()):
            sys.exit(1)

    def _print(self, name: str, report: ImportReport) -> None:
        self.stdout.write(f"{name}:")
        for result in report.results:
            self.stdout.write(
                f"  {result.verdict:8}  {result.action:9}  {result.kind} {result.name}"
            )
            for found in result.diagnostics:
                self.stdout.write(f"      {found.severity}: {found.code}: {found.sentence}")
        if report.undone:
            self.stdout.write("  " + _("Nothing of this file was kept."))


def _text(name: str) -> bytes:
    """Return the file's content; one that is too large is refused by the importer."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with Path(name).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error
