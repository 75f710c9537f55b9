"""Print every code that the product can say, with its sentence."""

from typing import Any

from django.core.management.base import BaseCommand

from gpuplatform.common.reasons import REGISTRY

HEAD = """# Reasons: every code and its sentence

Made by `make docs` from the registry in `gpuplatform/common/reasons.py`. A word in braces is
filled with the number or name of the case. *error* refuses, *warning* accepts and tells, *info*
only tells; blockers and summary words describe waiting work.

| code | severity | sentence | what helps |
|---|---|---|---|
"""


class Command(BaseCommand):
    """``manage.py list_reasons``: the registry as a table."""

    help = "Print the registry of reasons as Markdown (docs/reasons.md)."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Print the table."""
        self.stdout.write(reasons_table(), ending="")


def reasons_table() -> str:
    """Return the registry as a Markdown page, sorted by code."""
    rows = (
        f"| `{code}` | {reason.severity} | {reason.sentence} | {reason.next_step} |\n"
        for code, reason in sorted(REGISTRY.items())
    )
    return HEAD + "".join(rows)
