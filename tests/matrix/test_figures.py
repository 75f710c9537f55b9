"""The same figure everywhere: page, file and REST answer are three readers of one selector."""

import re
from collections.abc import Callable
from decimal import Decimal

import pytest

from tests.matrix.reading import Reader, amount, as_csv, table, without_instants
from tests.matrix.world import CODES, MONTH, NOMINALS, word

pytestmark = pytest.mark.django_db
PARTS = ("borrowed", "lent", "idle", "pending")


# ---- quotas ------------------------------------------------------------------------------------
def bars(html: str) -> dict[str, dict[str, int]]:
    """Return by queue what its bar says."""
    found = {}
    for label in re.findall(r'class="qbar"[^>]*aria-label="([^"]*)"', html):
        name, facts = label.split(": ", 1)
        used, nominal = re.findall(r"(\d+) of (\d+) used", facts)[0]
        parts = {part: re.findall(rf"(\d+) {part}", facts) for part in PARTS}
        numbers = {part: int(n[0]) if n else 0 for part, n in parts.items()}
        found[name] = {"used": int(used), "nominal": int(nominal), **numbers}
    return found


@pytest.mark.parametrize("who", ["ada", "lea", "ian"])
@pytest.mark.parametrize("flavor", NOMINALS)
def test_quotas_are_the_same_on_the_page_in_files_and_over_rest(
    read: Callable[[str], Reader], flavor: str, who: str
):
    reader = read(who)
    rows = reader.csv("/queues/", flavor=flavor)
    queues = {row["name"]: row for row in rows if row["kind"] == "queue"}
    shown = bars(reader.page(f"/queues/?flavor={flavor}"))
    assert set(queues) <= set(shown)
    for name, row in queues.items():
        assert shown[name] == {part: int(row[part]) for part in shown[name]}
    assert as_csv(reader.json("/queues/", flavor=flavor)) == rows
    promised = {}
    for queue in reader.rest("cluster-queues/")["results"]:
        (group,) = queue["groups"]
        (cells,) = [one["quotas"] for one in group["flavors"] if one["flavor"] == flavor]
        promised[queue["name"]] = cells[0]["nominal"]
    assert promised == {name: row["nominal"] for name, row in queues.items()}


def test_a_queues_own_page_and_file_say_what_the_list_says(read: Callable[[str], Reader]):
    reader, name = read("lea"), word("datos", "queue")
    rows = [row for row in reader.csv("/queues/") if row["name"] == name]
    assert reader.csv(f"/queues/{name}/") == rows
    large = re.findall(
        r'class="qbar[^"]*"[^>]*aria-label="([^"]*)"', reader.page(f"/queues/{name}/")
    )
    said = {label.split(":")[0]: label for label in large}
    for row in rows:
        assert f"{row['used']} of {row['nominal']} used" in said[row["flavor"]]


def test_gpus_in_use_are_the_same_by_queue_by_workload_and_by_node(read: Callable[[str], Reader]):
    reader = read("ada")
    queues = [row for row in reader.csv("/queues/") if row["kind"] == "queue"]
    running = reader.csv("/workloads/", state="running")
    nodes = reader.csv("/nodes/")
    loans = [row for row in reader.csv("/borrowing/") if not row["to"]]
    used = sum(int(row["used"]) for row in queues)
    assert used == sum(int(row["gpus"]) for row in running) == 14
    assert used == sum(int(row["used"]) for row in nodes)
    borrowed = sum(int(row["borrowed"]) for row in queues)
    assert borrowed == sum(int(row["lent"]) for row in queues)
    assert borrowed == sum(int(row["gpus"]) for row in loans) == 3


# ---- workloads and loans -----------------------------------------------------------------------
@pytest.mark.parametrize("who", ["ada", "lea", "ian"])
def test_workloads_are_the_same_on_the_page_in_files_and_over_rest(
    read: Callable[[str], Reader], who: str
):
    reader = read(who)
    rows = reader.csv("/workloads/")
    keys = [(row["uid"], row["status"], row["gpus"]) for row in rows]
    shown = [
        (re.findall(r"/workloads/([0-9a-f-]{36})/", row["html"])[0], row)
        for row in table(reader.page("/workloads/"))
    ]
    assert [(uid, row["State"].lower().split()[0], row["GPUs"]) for uid, row in shown] == [
        (uid, {"finished": "succeeded"}.get(status, status), gpus) for uid, status, gpus in keys
    ]
    answered = reader.rest("workloads/")["results"]
    assert [(row["uid"], row["status"], str(row["gpus"])) for row in answered] == keys
    assert without_instants(as_csv(reader.json("/workloads/"))) == without_instants(rows)


@pytest.mark.parametrize("who", ["ada", "lea", "ian"])
def test_loans_are_the_same_on_the_page_and_in_files(read: Callable[[str], Reader], who: str):
    reader = read(who)
    rows = reader.csv("/borrowing/")
    shown = [row for row in table(reader.page("/borrowing/")) if "GPU-hours" in row]
    assert [
        (row[""], row["Lender"], row["Flavor"], row["GPUs"], amount(row["GPU-hours"]))
        for row in shown
    ] == [
        (row["borrower"], row["lender"], row["flavor"], row["gpus"], Decimal(row["gpu_hours"]))
        for row in rows
    ]
    assert without_instants(as_csv(reader.json("/borrowing/"))) == without_instants(rows)


# ---- money -------------------------------------------------------------------------------------
@pytest.mark.parametrize("scope", [*CODES, "__central__"])
def test_a_bill_is_the_same_on_the_page_in_files_and_over_rest(
    read: Callable[[str], Reader], scope: str
):
    reader, path = read("fin"), f"/bills/{MONTH}/{scope}/"
    rows = reader.csv(path)
    amounts = [Decimal(row["amount"]) for row in rows]
    answer = reader.json(path)
    assert [Decimal(line["amount"]) for line in answer["lines"]] == amounts
    assert Decimal(answer["total"]) == sum(amounts)
    assert reader.rest(f"bills/{MONTH}/{scope}/") == answer
    shown = [
        amount(row["Amount"])
        for row in table(reader.page(path))
        if "Amount" in row and "is-memo" not in row["html"]
    ]
    assert shown == amounts
    days = answer["by_day"].values()
    assert sum(Decimal(value) for day in days for value in day.values()) == sum(amounts)


def test_the_bills_of_a_month_are_the_same_everywhere_and_add_up_to_the_capacity(
    read: Callable[[str], Reader],
):
    reader, path = read("fin"), f"/bills/{MONTH}/"
    lines, answer = reader.csv(path), reader.json(path)
    totals = {row["team"] or "__central__": Decimal(row["total"]) for row in answer["bills"]}
    for scope, total in totals.items():
        assert total == sum(Decimal(row["amount"]) for row in lines if row["team_id"] == scope)
    assert sum(totals.values()) == Decimal(answer["total"]) == Decimal(answer["capacity_cost"])
    assert reader.rest(f"bills/{MONTH}/") == answer
    shown = [row for row in table(reader.page(path)) if "Total" in row]
    assert [amount(row["Total"]) for row in shown] == [*totals.values(), sum(totals.values())]
    (month,) = reader.csv("/bills/")
    assert Decimal(month["total"]) == sum(totals.values())
    so_far = {row["team"]: Decimal(row["total"]) for row in reader.csv("/cost/")}
    assert so_far == totals


def test_a_lead_sees_the_same_bill_as_finance(read: Callable[[str], Reader]):
    path = f"/bills/{MONTH}/datos/"
    assert read("lea").csv(path) == read("fin").csv(path)
    (own,) = read("lea").json(f"/bills/{MONTH}/")["bills"]
    assert own in read("fin").json(f"/bills/{MONTH}/")["bills"]


# ---- what a reader may not see changes no figure -----------------------------------------------
def test_the_figure_of_a_foreign_queue_is_that_of_no_queue(read: Callable[[str], Reader]):
    figure = "/charts/quota-use/"
    foreign, nothing = (
        read("lea").client.get(figure, {"queue": name}).json()["data"]
        for name in (word("ia", "queue"), "nobody")
    )
    assert foreign == nothing
    own = read("lea").client.get(figure, {"queue": word("datos", "queue")}).json()["data"]
    assert own != nothing
