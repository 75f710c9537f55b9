"""Files of bills: the same rows in every form, hashes that hold, and no cell that runs."""

import csv
import io
import json
import re
import tracemalloc
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import pytest
import time_machine

from finops import billing, exports
from finops.closing.adjusting import AdjustmentSpec, adjust
from finops.files import answers, printing
from finops.files.focus import COLUMNS, VERSIONS, columns
from finops.models import Bill
from gpuplatform.common.models import AuditEntry
from tests.finops.closing.world import AFTER, JUNE, charged_june, close

from .structure import problems, rows_of

pytestmark = pytest.mark.django_db
GOLDEN = Path(__file__).parents[1] / "golden"
MONTH, OWN = f"/bills/{JUNE}/", f"/bills/{JUNE}/datos/"
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


@pytest.fixture
def closed(fin, ada):
    """The articles' month, idle shared, with a line by hand, closed."""
    with time_machine.travel(AFTER, tick=False):
        charged_june()
        billing.choose_idle_policy(JUNE, "proportional", None)
        adjust(JUNE, AdjustmentSpec("ia", Decimal("-12.50"), "=cmd|' /C calc'!A0"), fin)
        yield close(fin, ada)


def get(browser, path, **query):
    answer = browser.get(path, query)
    assert answer.status_code == 200, answer.content[:300]
    return answer


def golden(name, found):
    import os  # noqa: PLC0415  # beside its only use

    if os.environ.get("GOLDEN") == "write":
        (GOLDEN / name).write_bytes(found)
    return (GOLDEN / name).read_bytes()


def csv_of(content):
    return list(csv.DictReader(io.StringIO(content.decode())))


def cells(content):
    """Return the cells of a workbook's first sheet, row by row."""
    with ZipFile(io.BytesIO(content)) as book:
        sheet = ET.fromstring(book.read("xl/worksheets/sheet1.xml"))  # ours
        names = book.namelist()
    assert not any("externalLink" in name or "vba" in name.lower() for name in names)
    assert sheet.find(f".//{MAIN}f") is None, "a formula"
    return [
        {re.sub(r"\d", "", cell.get("r")): "".join(cell.itertext()) for cell in row}
        for row in sheet.iter(f"{MAIN}row")
    ]


# ---- golden ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"format": "csv"}, "month_2026-06_closed.csv"),
        ({"format": "csv", "profile": "excel-de"}, "month_2026-06_closed_excel-de.csv"),
        ({"format": "focus"}, "month_2026-06_focus-1.2.csv"),
        ({"format": "focus", "profile": "1.4"}, "month_2026-06_focus-1.4.csv"),
    ],
)
def test_files_of_a_closed_month_are_the_golden_ones(closed, fin, signed_in, query, name):
    found = get(signed_in(fin), MONTH, **query).content
    assert found == golden(name, found)
    assert found == get(signed_in(fin), MONTH, **query).content


# ---- FOCUS -------------------------------------------------------------------------------------
def test_the_sample_keeps_the_rules_that_ours_is_held_to(shared):
    sample = (shared / "samples/focus/gpuplatform_focus12_2026-06_v1.csv").read_bytes()
    rows = rows_of(sample)
    assert problems(rows) == []
    missing = set(rows[0]) - set(COLUMNS)
    assert missing == set(), "every column of the sample is one of ours"


def test_ours_keeps_the_structure_of_focus_and_adds_up(closed, fin, signed_in):
    browser = signed_in(fin)
    rows = rows_of(get(browser, MONTH, format="focus").content)
    assert problems(rows) == []
    assert tuple(rows[0]) == COLUMNS
    billed = sum(Decimal(row["BilledCost"]) for row in rows)
    assert billed == Decimal("4032.00") - Decimal("12.50") == closed.total_cost
    lines = csv_of(get(browser, MONTH, format="csv").content)
    assert [row["BilledCost"] for row in rows] == [
        f"{Decimal(line['amount']).normalize():f}" for line in lines
    ]
    borrowed = [row for row in rows if row["PricingCategory"] == "Dynamic"]
    assert {row["CapacityReservationId"] for row in borrowed} == {""}
    assert {row["InvoiceId"] for row in rows if row["SubAccountId"] == "datos"} == {
        "GPU-2026-000001"
    }


def test_a_rule_that_is_broken_is_found(closed, fin, signed_in):
    rows = rows_of(get(signed_in(fin), MONTH, format="focus").content)
    rows[0]["ListCost"] = "1.00"
    rows[1]["ChargeCategory"] = "Use"
    rows[2]["SubAccountName"] = ""
    broken = {(number, column) for number, column, _why in problems(rows)}
    assert {(0, "ListCost"), (1, "ChargeCategory"), (2, "SubAccountName")} <= broken


def test_1_4_is_the_same_by_another_name(closed, fin, signed_in):
    browser = signed_in(fin)
    old = rows_of(get(browser, MONTH, format="focus").content)
    new = rows_of(get(browser, MONTH, format="focus", profile="1.4").content)
    assert problems(new, "ServiceProviderName") == []
    assert tuple(new[0]) == columns("1.4")
    assert not {"ProviderName", "PublisherName"} & set(new[0])
    names = [name for name in old[0] if name in new[0]]
    assert [[row[name] for name in names] for row in old] == [
        [row[name] for name in names] for row in new
    ]


# ---- workbook ----------------------------------------------------------------------------------
def test_the_workbook_has_the_rows_of_the_csv_and_no_formula(closed, fin, signed_in):
    browser = signed_in(fin)
    head, *rows = cells(get(browser, MONTH, format="xlsx").content)
    letters = {name: letter for letter, name in head.items()}
    lines = csv_of(get(browser, MONTH, format="csv").content)
    for line, row in zip(lines, rows, strict=False):
        for name in ("quantity", "unit_price", "amount"):
            assert Decimal(row.get(letters[name], "0")) == Decimal(line[name] or 0), name
        assert row[letters["description"]] == line["description"]
    total = rows[len(lines)]
    assert total[letters["description"]] == "TOTAL"
    assert Decimal(total[letters["amount"]]) == sum(Decimal(line["amount"]) for line in lines)
    assert any(row.get(letters["note"], "").startswith("=cmd") for row in rows), "as text"


def test_no_text_of_a_csv_begins_like_a_formula(closed, fin, signed_in):
    for query in ({"format": "csv"}, {"format": "focus"}):
        for row in csv_of(get(signed_in(fin), MONTH, **query).content):
            texts = [v for v in row.values() if not re.fullmatch(r"-?[\d.]*", v)]
            assert not [text for text in texts if text.startswith(exports.FORMULA)]


# ---- manifest ----------------------------------------------------------------------------------
def test_the_manifest_holds_for_every_file_of_the_archive(closed, fin, signed_in):
    browser = signed_in(fin)
    answer = get(browser, MONTH, format="zip")
    with ZipFile(io.BytesIO(answer.content)) as book:
        files = {name: book.read(name) for name in book.namelist()}
    described = json.loads(files.pop("manifest.json"))
    assert {one["name"]: one["sha256"] for one in described["files"]} == {
        name: sha256(content).hexdigest() for name, content in files.items()
    }
    assert described == get(browser, MONTH, format="manifest").json()
    assert described["totals"] == {"EUR": "4019.50"}
    (machine,) = (name for name in files if re.fullmatch(r".*_all_closed_r1\.csv", name))
    assert len(csv_of(files[machine])) == described["rows"]
    assert files[machine] == get(browser, MONTH, format="csv").content
    assert answer.content == get(browser, MONTH, format="zip").content, "equal bytes"
    assert described["generated_at"] == "2026-07-02T00:00:00Z"


# ---- doors -------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["csv", "focus", "xlsx", "manifest", "zip"])
def test_a_lead_takes_home_the_own_bill_and_it_is_noted(closed, lea, signed_in, kind):
    browser = signed_in(lea)
    for path in (MONTH, OWN):
        found = get(browser, path, format=kind)
        text = found.content.decode(errors="replace")
        assert "Plataforma" not in text.replace("lender cq-plataforma", "")
    assert browser.get(f"/bills/{JUNE}/ia/", {"format": kind}).status_code == 404
    entry = AuditEntry.objects.filter(action="bill.exported").first()
    assert (entry.subject, entry.team) == (f"{JUNE} datos {kind}", "datos")
    rest = browser.get(f"/api/v1/bills/{JUNE}/datos/files/{kind}/")
    assert rest.content == get(browser, OWN, format=kind).content


@pytest.mark.parametrize(
    "path",
    [
        f"/api/v1/bills/{JUNE}/files/exe/",
        "/api/v1/bills/2026-99/files/csv/",
    ],
)
def test_what_is_not_written_here_is_not_found(closed, fin, signed_in, path):
    assert signed_in(fin).get(path).status_code == 404


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("csv", "known are machine, excel-es, excel-de."),
        ("focus", "known are 1.2, 1.4."),
        ("xlsx", "A file of this kind has no profiles."),
        ("zip", "A file of this kind has no profiles."),
        ("manifest", "A file of this kind has no profiles."),
        ("pdf", "A file of this kind has no profiles."),
    ],
)
def test_a_profile_that_a_file_does_not_have_is_refused_by_name(
    closed, fin, signed_in, kind, words
):
    browser = signed_in(fin)
    rest = f"/api/v1/bills/{JUNE}/files/{kind}/?profile=zz"
    for path in (rest, f"{OWN}?format={kind}&profile=zz"):
        refused = browser.get(path)
        assert (refused.status_code, words in refused.text) == (422, True)
    assert browser.get(rest).json()["errors"][0]["pointer"] == "/profile"
    assert not AuditEntry.objects.filter(action="bill.exported").exists()


# ---- PDF ---------------------------------------------------------------------------------------
def test_a_pdf_is_refused_in_words_where_the_extra_is_missing(closed, fin, signed_in, monkeypatch):
    monkeypatch.setattr(answers, "can_print", lambda: False)
    browser = signed_in(fin)
    page = browser.get(OWN, {"format": "pdf"})
    assert (page.status_code, "its extra pdf" in page.content.decode()) == (422, True)
    rest = browser.get(f"/api/v1/bills/{JUNE}/datos/files/pdf/")
    assert rest.json()["errors"][0]["code"] == "PDF_NOT_INSTALLED"
    assert browser.get(MONTH, {"format": "pdf"}).status_code == 422


def test_the_printed_bill_has_the_lines_number_and_total(closed, fin, signed_in, monkeypatch):
    printed = []

    def html(string, **_more):
        printed.append(string)
        return SimpleNamespace(write_pdf=lambda: b"%PDF-1.7 made")

    monkeypatch.setattr(answers, "can_print", lambda: True)
    monkeypatch.setattr(printing, "import_module", lambda _name: SimpleNamespace(HTML=html))
    answer = get(signed_in(fin), OWN, format="pdf")
    assert answer["Content-Type"] == "application/pdf"
    (page,) = printed
    bill = Bill.objects.get(team__name="datos")
    for text in ("GPU-2026-000001", "2,468.57", "debit 1001", bill.issued.sha256):
        assert text in page
    assert page.count("<tr>") >= bill.lines.count()


@pytest.mark.skipif(not printing.can_print(), reason="only on machines with the extra pdf")
def test_a_real_pdf_is_made(closed, fin, signed_in):
    assert get(signed_in(fin), OWN, format="pdf").content.startswith(b"%PDF-")


# ---- large files -------------------------------------------------------------------------------
def test_a_large_file_is_streamed_with_the_same_bytes(closed, fin, signed_in, monkeypatch):
    whole = get(signed_in(fin), MONTH, format="csv").content
    monkeypatch.setattr(answers, "STREAMED", 1)
    monkeypatch.setattr(answers, "PIECE", 2)
    answer = get(signed_in(fin), MONTH, format="csv")
    assert answer.streaming
    pieces = list(answer)
    assert len(pieces) > 2
    assert b"".join(pieces) == whole


def test_writing_a_file_takes_no_memory_by_its_length(closed):
    row = next(iter(exports.bill_rows([_any_line()])))

    def peak(count):
        tracemalloc.start()
        for _line in exports.csv_lines((row for _ in range(count)), "excel-de"):
            pass
        _now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    whole = 4_000 * len(next(exports.csv_lines(iter([row])))) // 2  # bytes, at the least
    assert peak(4_000) < whole / 4


def _any_line():
    from finops.selectors.bill_files import NO_FIGURES, BillView, month  # noqa: PLC0415

    bill = Bill.objects.exclude(team=None).select_related("team", "period", "issued").first()
    view = BillView(bill, bill.period, month(JUNE), (), NO_FIGURES)
    return view, bill.lines.first()


def test_every_version_has_the_columns_of_its_own(closed):
    assert VERSIONS == ("1.2", "1.4")
    assert len(set(columns("1.4"))) == len(COLUMNS)
