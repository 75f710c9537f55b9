"""Commands about room: what one could get now, and the tree of who is promised what."""

from collections import defaultdict
from collections.abc import Iterator
from gettext import gettext as _
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from gpuplatform.client.failures import Exit, Failed
from gpuplatform.client.options import Out, connect
from gpuplatform.client.output import Column, Format, column, is_watched, show
from gpuplatform.client.words import GPU

AVAILABLE = (
    column("QUEUE"),
    column("FLAVOR"),
    column("RESOURCE", wide=True),
    column("STATE"),
    column("NOMINAL", right=True),
    column("USED", right=True),
    column("IN-QUOTA", "in_quota_now", right=True),
    column("BORROWABLE", "borrowable_now", right=True),
    column("FREE-ON-NODES", "free_on_nodes", right=True),
    column("PENDING", wide=True, right=True),
    Column("LARGEST-GANG", lambda row: _gang(row["largest_gangs"].get("1"))),
)
NODES_OF_TREE = (
    *(column("KIND"), column("NAME"), column("PARENT"), column("NOMINAL", right=True)),
    *(column("USED", right=True), column("BORROWED", right=True)),
)


def _gang(by_level: dict[str, int] | None) -> str:
    """Return how many pods of one GPU fit side by side, nearest level first."""
    levels = (by_level or {}).items()
    return " ".join(f"{level.rsplit('/', 1)[-1]}={count}" for level, count in levels)


def avail(
    queue: Annotated[str, typer.Option("--queue", "-q", help="One queue only.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="CPU and memory as well.")] = False,
    output: Out = Format.TABLE,
) -> None:
    """Say what your queues could take now: of their own, of others', and in one piece.

    Example: gpuctl avail -q cq-vision
    """
    rows = [
        row
        for row in connect().get("availability/")["results"]
        if queue in ("", row["queue"]) and (everything or row["resource"] == GPU)
    ]
    if queue and not rows:
        words = _("There is no queue {name} with GPUs that you may see.").format(name=queue)
        raise Failed(Exit.NOT_FOUND, words)
    show(rows, AVAILABLE, output, name="queue")


def tree(output: Out = Format.TABLE) -> None:
    """Print cohorts and queues with their GPUs: used of promised."""
    server = connect()
    sums: dict[str, dict[str, Any]] = {}
    for row in server.get("availability/")["results"]:
        if row["resource"] == GPU:
            one = sums.setdefault(row["queue"], defaultdict(int))
            for name in ("nominal", "used", "borrowed"):
                one[name] += row[name]
    rows = [
        {"kind": "cohort", "name": row["name"], "parent": row["parent"]}
        for row in server.rows("cohorts/")
    ]
    rows += [
        {"kind": "queue", "name": row["name"], "parent": row["cohort"]} | sums.get(row["name"], {})
        for row in server.rows("cluster-queues/")
    ]
    if output is Format.TABLE and is_watched():
        _drawn(rows)
    else:
        show(rows, NODES_OF_TREE, output)


def _drawn(rows: list[dict[str, Any]]) -> None:
    names = {row["name"] for row in rows if row["kind"] == "cohort"}
    below: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        below[row["parent"] if row["parent"] in names else None].append(row)
    root = Tree(Text("."))
    for row in below[None]:
        _hang(root, row, below)
    Console().print(root)


def _hang(tree: Tree, row: dict[str, Any], below: dict[str | None, list[dict[str, Any]]]) -> None:
    branch = tree.add(Text(" ".join(_label(row))))
    for child in below[row["name"]] if row["kind"] == "cohort" else ():
        _hang(branch, child, below)


def _label(row: dict[str, Any]) -> Iterator[str]:
    yield row["name"]
    if "nominal" in row:
        yield _("{used} of {nominal} GPU").format(**row)
        if row["borrowed"]:
            yield _("({borrowed} borrowed)").format(**row)
