"""Pages that are made from the code are as the code would make them today (`make docs`)."""

import json
from io import StringIO
from pathlib import Path

from django.core.management import call_command

from gpuplatform.doors.management.commands.list_reasons import reasons_table

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_reasons_shows_the_registry() -> None:
    assert (DOCS / "reasons.md").read_text() == reasons_table()


def test_the_committed_schema_is_the_served_one() -> None:
    made = StringIO()
    call_command("spectacular", format="openapi-json", fail_on_warn=True, stdout=made)
    assert json.loads((DOCS / "openapi.json").read_text()) == json.loads(made.getvalue())
