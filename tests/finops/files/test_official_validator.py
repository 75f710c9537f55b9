"""The FOCUS export before the official validator, where one is installed (``finops.md`` 7).

It needs a Python of its own (3.12 or later): ``make focus-validator`` makes one and runs this;
``FOCUS_VALIDATOR`` names its program. Elsewhere ``structure.py`` checks what can be checked.
"""

import csv
import os
import re
import subprocess
from io import StringIO
from pathlib import Path

import pytest

PROGRAM = os.environ.get("FOCUS_VALIDATOR", "")
EXPORT = Path(__file__).parents[1] / "golden" / "month_2026-06_focus-1.2.csv"
CRITERIA = (
    *("ACCOUNT_NAMING", "USAGE_MEASUREMENT", "UNIT_PRICING", "SUB_ACCOUNT"),
    *("RESOURCE_TYPE_ASSIGNMENT", "BILLING_BASED_ON_PROVISIONED_RESOURCES", "REGION"),
    *("PUBLIC_PRICE_LIST", "NEGOTIATED_PRICING", "TAGGING"),
)
# Of both rules its model knows no condition: a line has an invoice, or it has none.
HAS_NONE, HAS_ONE = "InvoiceId-C-004-C", "InvoiceId-C-005-C"
LEAST_PASSED = 260

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PROGRAM, reason="only on machines with its program"),
]


def verdicts(file: Path) -> tuple[int, set[str]]:
    """Return how many rules pass, and which fail."""
    criteria = ",".join(f"{name}_SUPPORTED" for name in CRITERIA)
    home = next((Path(PROGRAM).parents[1] / "lib").glob("python3*")) / "site-packages"
    asked = ["--data-file", str(file), "--validate-version", "1.2.0.1", "--block-download"]
    asked += ["--focus-dataset", "CostAndUsage", "--applicability-criteria", criteria]
    said = subprocess.run(
        [PROGRAM, *asked],
        cwd=home,  # it looks for its list of currencies beside itself
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    ).stdout
    total = re.search(r"Pass: (\d+) \| Fail: \d+", said)
    assert total, said[-2000:]
    return int(total[1]), set(re.findall(r"^\N{CROSS MARK} ([\w-]+): FAIL", said, re.MULTILINE))


def part(tmp_path: Path, *, invoiced: bool) -> Path:
    """Write the lines of the export that have an invoice, or those that have none."""
    rows = list(csv.DictReader(StringIO(EXPORT.read_text(encoding="utf-8"))))
    file = tmp_path / "part.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, rows[0].keys())
        writer.writeheader()
        writer.writerows(row for row in rows if bool(row["InvoiceId"]) == invoiced)
    return file


@pytest.mark.parametrize(("invoiced", "unconditional"), [(True, HAS_NONE), (False, HAS_ONE)])
def test_lines_pass_every_applicable_rule_but_the_one_that_knows_no_condition(
    tmp_path: Path, invoiced: bool, unconditional: str
) -> None:
    passed, failed = verdicts(part(tmp_path, invoiced=invoiced))
    assert failed == {unconditional}
    assert passed >= LEAST_PASSED


def test_a_month_with_both_kinds_of_lines_fails_nothing_else() -> None:
    passed, failed = verdicts(EXPORT)
    assert failed == {HAS_NONE, HAS_ONE, "InvoiceId-C-003-C", "InvoiceId-C-000-O"}
    assert passed >= LEAST_PASSED
