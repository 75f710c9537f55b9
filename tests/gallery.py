"""What the gallery shows: every page of the product, who looks at it, and what it is for."""

import re
from collections.abc import Iterator
from typing import NamedTuple

MONTH = "2026-06"
WINDOW = {"width": 1280, "height": 900}
HEAD = """# Every page of the demo

Made by `make screenshots` out of the demo (`make demo`), in a window of {width} x {height} pixels.
Each is a link to its full size; some are there in dark, too.

"""


class Picture(NamedTuple):
    """One picture: its name, who looks at which address of the demo, and a line about it.

    ``follow``: a link on that page to go on through, for addresses that differ from demo to demo.
    """

    name: str
    person: str
    path: str
    line: str
    follow: str = ""


ROOMS = {
    "Who uses what": (
        Picture("overview", "ada", "/", "six key numbers, who holds what, and who waits"),
        Picture("overview-lead", "lea", "/", "the same page for the lead of a team"),
        Picture("queues", "ada", "/queues/", "the tree of cohorts and queues, with quota bars"),
        Picture("queue", "ada", "/queues/cq-datos/", "one queue: quota, order, loans, history"),
        Picture("cohort", "ada", "/cohorts/llm-platform/", "a cohort: who borrows from whom"),
        Picture("fair-share", "ada", "/fair-share/", "whose turn it is next, and by which rule"),
        Picture("borrowing", "ada", "/borrowing/", "the ledger of loans, open and returned"),
        Picture("evictions", "ada", "/evictions/", "who was evicted for whom, and what it cost"),
        Picture("gpu-hours", "ada", "/gpu-hours/", "what became of GPU-hours, by team or queue"),
        Picture("alerts", "ada", "/alerts/", "where promises and machines do not agree"),
    ),
    "Work": (
        Picture("workloads", "ada", "/workloads/", "what runs, what waits, and where in line"),
        Picture(
            *("why-pending", "bo", "/workloads/?state=pending"),
            *("why a workload waits, with numbers and a next step", "tbody th a"),
        ),
        Picture(
            *("workload", "ada", "/workloads/?state=running"),
            *("a running gang: its nodes, its story, what it costs", "tbody th a"),
        ),
        Picture("submit", "ian", "/submit/", "manifests pasted or uploaded, with a dry run"),
        Picture("priority-classes", "ada", "/priority-classes/", "named priorities"),
        Picture("admission-checks", "ada", "/admission-checks/", "what is asked before a start"),
        Picture("search", "ada", "/search/?q=datos", "one search over everything"),
    ),
    "Machines": (
        Picture("nodes", "ada", "/nodes/", "every GPU by team, and the largest gang that fits"),
        Picture("node", "ada", "/nodes/gpu-a1-1/", "one node: its devices and who stands on them"),
        Picture("flavors", "ada", "/flavors/", "kinds of GPUs and trees of places"),
        Picture("flavor", "ada", "/flavors/h100-pool/", "a flavor: what is behind it"),
        Picture("topology", "ada", "/topologies/pool/", "tiers, and the room in each place"),
        Picture("agents", "ada", "/agents/", "programs that drive machines, and when last heard"),
    ),
    "Promises and people": (
        Picture("teams", "ada", "/teams/", "teams with members, namespaces and quota"),
        Picture("team", "ada", "/teams/datos/", "one team: queues, doors, members, changes"),
        Picture("queue-edit", "ada", "/queues/cq-datos/edit/", "the quota editor, with a preview"),
        Picture("queue-new", "ada", "/queues/new/", "a new queue, with defaults filled in"),
        Picture("quotas", "ada", "/quotas/", "quotas of many queues in one table, or as a file"),
        Picture("cohort-edit", "ada", "/cohorts/llm-platform/edit/", "how a cohort shares"),
        Picture("flavor-edit", "ada", "/flavors/h100-pool/edit/", "which nodes a flavor means"),
        Picture("requests", "ada", "/requests/", "requests of quota that wait for an answer"),
        Picture(
            *("request", "ada", "/requests/", "one request, for the admin to decide"),
            "main tbody a",
        ),
        Picture("people", "ada", "/people/", "who has an account, roles and teams"),
        Picture("person", "ada", "/people/lea/edit/", "one person: roles, teams, password"),
        Picture("account", "lea", "/account/", "one's own account and tokens"),
        Picture("webhooks", "ada", "/webhooks/", "addresses that are told what happens"),
        Picture("replays", "ada", "/replays/", "last month under other quotas"),
        Picture("replay-new", "ada", "/replays/new/", "which quotas to try on which month"),
        Picture("audit", "aud", "/audit/", "who changed what, from what to what, and why"),
    ),
    "Money": (
        Picture("cost", "fin", "/cost/", "the month so far, idle as a figure of its own"),
        Picture("cost-by", "fin", "/cost/by/?window=2026-06", "by team, namespace, model, label"),
        Picture("months", "fin", "/bills/", "all months, and what each came to"),
        Picture("bills", "fin", f"/bills/{MONTH}/", "who pays what; it adds up to the cent"),
        Picture("bill", "fin", f"/bills/{MONTH}/datos/", "one bill: quantity, price, amount"),
        Picture("summary", "fin", f"/bills/{MONTH}/summary/", "a row for each team"),
        Picture("rules", "fin", f"/bills/{MONTH}/rules/", "the rules that the month is billed by"),
        Picture("close", "fin", f"/bills/{MONTH}/close/", "what stands in the way of closing"),
        Picture("budgets", "fin", "/budgets/", "budgets, thresholds, and when they are gone"),
        Picture("drift", "fin", "/drift/", "where sources tell the same month differently"),
        Picture("prices", "fin", "/prices/", "what a GPU-hour costs from when to when"),
        Picture("token-prices", "fin", "/prices/tokens/", "what a million tokens should cost"),
        Picture("calculator", "fin", "/prices/calculator/", "a price out of a node's own cost"),
        Picture("shared-costs", "fin", "/shared-costs/", "what all teams carry together"),
        Picture("mappings", "fin", "/mappings/", "whose namespaces, labels and models are"),
        Picture("sources", "ada", "/sources/", "OpenCost and LiteLLM, and how complete each is"),
        Picture("source", "ada", "/sources/litellm/", "one source, day by day"),
        Picture("failures", "ada", "/failures/", "what failed by itself, and was tried again"),
    ),
}
DARK = (
    *("overview", "queues", "queue", "workloads", "why-pending", "nodes", "borrowing"),
    *("queue-edit", "cost", "bill"),
)


def every_picture() -> Iterator[Picture]:
    """Yield all pictures, in the order of the gallery."""
    for pictures in ROOMS.values():
        yield from pictures


def file_of(picture: Picture, theme: str) -> str:
    """Return the name of a picture's file."""
    return f"{picture.name}{'-dark' if theme == 'dark' else ''}.webp"


def gallery() -> str:
    """Return the page of all pictures, a line for each."""
    parts = [HEAD.format(**WINDOW)]
    for room, pictures in ROOMS.items():
        parts.append(f"## {room}\n\n| | |\n|---|---|\n")
        parts += [_row(one) for one in pictures]
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def _row(one: Picture) -> str:
    file = file_of(one, "light")
    path = re.sub(r"\?.*", "", one.path) + ("..." if one.follow else "")
    dark = f" ([dark]({file_of(one, 'dark')}))" if one.name in DARK else ""
    picture = f'<a href="{file}"><img src="{file}" width="320" alt="{one.line}"></a>'
    return f"| {picture} | `{path}`: {one.line}{dark} |\n"
