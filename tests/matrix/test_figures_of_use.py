"""The same figure everywhere, of what was used: overview, GPU-hours, evictions, cost, nodes."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.matrix.reading import Reader, amount, table, text_of
from tests.matrix.world import MONTH

pytestmark = pytest.mark.django_db
WINDOW = {"window": MONTH}
ROUNDED = Decimal("0.05")  # of GPU-hours with one decimal
SIXTH = Decimal("0.000001")


def shown(text: str) -> Decimal | None:
    """Return the number of a cell; None where it is not measured."""
    return None if text == "-" else amount(re.sub(r"[^\d.,\N{MINUS SIGN}-]", "", text))


def decimals(rows: list[dict[str, Any]], *columns: str) -> list[list[Decimal | None]]:
    """Return columns of a file or an answer as numbers."""
    return [
        [None if row[name] in {"", None} else Decimal(str(row[name])) for name in columns]
        for row in rows
    ]


def cells(rows: list[dict[str, str]], *labels: str) -> list[list[Decimal | None]]:
    """Return columns of a page's table as numbers."""
    return [[shown(row[label]) for label in labels] for row in rows]


def tiles(html: str) -> dict[str, str]:
    """Return the key numbers of a page by their labels."""
    found = re.findall(r'<p class="label">(.*?)</p>\s*<p class="value">(.*?)</p>', html, re.DOTALL)
    return {text_of(label): text_of(value) for label, value in found}


def assert_close(first: list[Any], second: list[Any]) -> None:
    """Both say the same, the one of them with one decimal."""
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        pairs = list(zip(one, other, strict=True))
        assert [a is None for a, _ in pairs] == [b is None for _, b in pairs]
        assert all(a is None or abs(a - b) <= ROUNDED for a, b in pairs), (one, other)


def test_key_numbers_of_the_overview_are_the_sums_of_the_lists(read: Callable[[str], Reader]):
    reader = read("ada")
    numbers = tiles(reader.page("/"))
    nodes = reader.csv("/nodes/")
    running = reader.csv("/workloads/", state="running")
    loans = [row for row in reader.csv("/borrowing/") if not row["to"]]
    pending = reader.csv("/workloads/", state="pending")
    healthy = [row for row in nodes if row["state"] == "ready"]
    assert int(numbers["GPUs"]) == sum(int(row["gpus"]) for row in healthy)
    assert int(numbers["In use"]) == sum(int(row["gpus"]) for row in running)
    assert int(numbers["Borrowed"]) == sum(int(row["gpus"]) for row in loans)
    assert shown(numbers["Pending"]) == sum(int(row["gpus"]) for row in pending)
    assert int(numbers["Idle"]) == sum(int(row["free"]) for row in healthy)
    total = sum(Decimal(row["total"]) for row in reader.csv("/cost/"))
    assert shown(numbers["Cost this month"]) == total.quantize(Decimal(1))


def test_a_lead_counts_only_what_is_the_teams_own(read: Callable[[str], Reader]):
    reader = read("lea")
    numbers = tiles(reader.page("/"))
    queues = [row for row in reader.csv("/queues/") if row["kind"] == "queue"]
    assert int(numbers["Quota"]) == sum(int(row["nominal"]) for row in queues)
    assert int(numbers["In use"]) == sum(int(row["used"]) for row in queues)
    assert int(numbers["Borrowed"]) == sum(int(row["borrowed"]) for row in queues)


@pytest.mark.parametrize("who", ["ada", "lea", "ian"])
def test_nodes_are_the_same_in_the_file_and_over_rest(read: Callable[[str], Reader], who: str):
    reader = read(who)
    rows = reader.csv("/nodes/")
    answered = reader.rest("nodes/")["results"]
    assert [(r["node"], *map(int, (r["gpus"], r["used"], r["free"]))) for r in rows] == [
        (r["name"], r["gpus"], r["gpus_used"], r["gpus_free"]) for r in answered
    ]


@pytest.mark.parametrize("who", ["ada", "lea", "ian"])
def test_gpu_hours_are_the_same_on_the_page_in_the_file_and_over_rest(
    read: Callable[[str], Reader], who: str
):
    reader = read(who)
    kinds = ("held", "ready", "borrowed", "preempted", "lost", "sampled", "used", "idle")
    columns = [f"{kind}_gpu_hours" for kind in kinds]
    rows = reader.csv("/gpu-hours/", **WINDOW)
    answer = reader.rest(f"gpu-hours/?window={MONTH}")
    assert decimals(rows, *columns) == decimals(answer["rows"], *columns)
    assert [row["group"] for row in rows] == [row["group"] for row in answer["rows"]]
    page = [row for row in table(reader.page(f"/gpu-hours/?window={MONTH}")) if "Held" in row]
    labels = ("Held", "Ready", "Borrowed", "Preempted", "Lost", "Measured", "Busy", "Idle")
    lines = [row for row in page if row[""] not in {"Together", "Total"}]
    assert_close(cells(lines, *labels), decimals(rows, *columns))
    held = [row[0] for row in decimals(rows, "held_gpu_hours")]
    (total,) = decimals([answer["total"]], "held_gpu_hours")
    assert abs(total[0] - sum(held)) <= len(held) * SIXTH  # each is rounded to it


@pytest.mark.parametrize("who", ["ada", "lea", "ian"])
def test_evictions_are_the_same_on_the_page_in_the_file_and_over_rest(
    read: Callable[[str], Reader], who: str
):
    reader = read(who)
    rows = reader.csv("/evictions/")
    answered = reader.rest("evictions/")["results"]
    columns = ("gpus", "lost_gpu_hours", "worth")
    assert decimals(rows, *columns) == decimals(answered, *columns)
    page = [row for row in table(reader.page("/evictions/")) if "GPU-hours lost" in row]
    assert_close(cells(page, "GPU-hours lost"), decimals(rows, "lost_gpu_hours"))
    if page and "Worth" in page[0]:
        assert cells(page, "Worth") == decimals(rows, "worth")


@pytest.mark.parametrize("who", ["ada", "lea", "ian"])
def test_loans_are_worth_the_same_in_the_file_and_over_rest(
    read: Callable[[str], Reader], who: str
):
    reader = read(who)
    columns = ("gpus", "gpu_hours", "worth")
    rows = reader.csv("/borrowing/")
    assert decimals(rows, *columns) == decimals(reader.rest("ledger/")["results"], *columns)


@pytest.mark.parametrize("who", ["fin", "lea"])
def test_cost_by_group_is_the_same_everywhere_and_adds_up(read: Callable[[str], Reader], who: str):
    reader = read(who)
    rows = reader.csv("/cost/by/", **WINDOW)
    answer = reader.rest(f"cost/?window={MONTH}")
    columns = ("amount", "gpu_hours", "idle_gpu_hours")
    assert decimals(rows, *columns) == decimals(answer["rows"], *columns)
    amounts = [row[0] for row in decimals(rows, "amount")]
    assert sum(amounts) == Decimal(answer["total"])
    page = [row for row in table(reader.page(f"/cost/by/?window={MONTH}")) if "EUR" in row]
    assert [row[0] for row in cells(page, "EUR")] == [*amounts, sum(amounts)]
    hours = ("Used, GPU-h", "Idle, GPU-h")
    assert_close(cells(page[:-1], *hours), decimals(rows, "gpu_hours", "idle_gpu_hours"))


@pytest.mark.parametrize("who", ["fin", "lea"])
def test_the_cost_page_says_what_its_file_and_the_bills_do(
    read: Callable[[str], Reader], who: str
):
    reader = read(who)
    rows = reader.csv("/cost/")
    html = reader.page("/cost/")
    whole = {name: sum(row[0] for row in decimals(rows, name)) for name in ("total", "own")}
    said = tiles(html)
    assert shown(said["So far"]) == whole["total"].quantize(Decimal(1))
    assert shown(said["Own use"]) == whole["own"].quantize(Decimal(1))
    bills = reader.json(f"/bills/{MONTH}/")["bills"]
    assert sum(Decimal(bill["total"]) for bill in bills) == whole["total"]


def test_the_summary_of_a_month_is_the_same_in_the_file_and_over_rest(
    read: Callable[[str], Reader],
):
    reader, path = read("fin"), f"/bills/{MONTH}/summary/"
    rows = reader.csv(path)
    answer = reader.rest(f"periods/{MONTH}/summary/")
    assert answer == reader.json(path)
    assert decimals(rows, "total") == decimals(answer["rows"], "total")
    bills = {row["team"]: row["total"] for row in reader.json(f"/bills/{MONTH}/")["bills"]}
    assert {row["team"]: row["total"] for row in rows} == bills


def test_drift_budgets_and_prices_are_the_same_in_the_file_and_over_rest(
    read: Callable[[str], Reader],
):
    reader = read("fin")
    for path, rest, columns in (
        ("/drift/", f"drift/{MONTH}/", ("a", "b", "difference")),
        ("/budgets/", "budgets/", ("limit", "spent", "percent", "expected")),
    ):
        rows, answered = reader.csv(path), reader.rest(rest)
        answered = answered["results"] if isinstance(answered, dict) else answered
        assert decimals(rows, *columns) == decimals(answered, *columns)
        assert rows
