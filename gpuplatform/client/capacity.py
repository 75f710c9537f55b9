"""Commands about room: what one could get now, and the tree of who is promised what."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
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
    *(column("KIND"), column("NAME"), column("PARENT"), column("FLAVOR")),
    *(column("NOMINAL", right=True), column("USED", right=True), column("BORROWED", right=True)),
)
OF_FLAVOR = ("flavor", "nominal", "used", "borrowed")


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
    """Print cohorts and queues with the GPUs of each flavor: used of promised."""
    server = connect()
    own: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in server.get("availability/")["results"]:
        if row["resource"] == GPU:
            own[row["queue"]].append({name: row[name] for name in OF_FLAVOR})
    found = [
        _Branch("cohort", row["name"], row["parent"], _kept(row))
        for row in server.rows("cohorts/")
    ]
    found += [
        _Branch("queue", row["name"], row["cohort"], own[row["name"]])
        for row in server.rows("cluster-queues/")
    ]
    lines = list(_walk(found))
    if output is Format.TABLE and is_watched():
        _drawn(lines)
        return
    step = "  " if output is Format.TABLE else ""
    rows = [
        {**one.fields, **cell, "name": step * depth + one.name}
        for depth, one in lines
        for cell in one.cells or [{}]
    ]
    show(rows, NODES_OF_TREE, output)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A cohort or a queue; ``cells``: the GPUs of each flavor that are promised to itself."""

    kind: str
    name: str
    parent: str | None
    cells: list[dict[str, Any]]

    @property
    def fields(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "parent": self.parent}


def _kept(cohort: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a cohort keeps for all below it, by flavor."""
    return [
        {"flavor": flavor["flavor"], "nominal": cell["nominal"]}
        for group in cohort.get("groups") or []
        for flavor in group["flavors"]
        for cell in flavor["quotas"]
        if cell["resource"] == GPU
    ]


def _walk(found: list[_Branch]) -> Iterator[tuple[int, _Branch]]:
    """Yield everything with its depth, parents first; what is in a circle stands as a root."""
    cohorts = {one.name for one in found if one.kind == "cohort"}
    below: dict[str | None, list[_Branch]] = defaultdict(list)
    for one in found:
        below[one.parent if one.parent in cohorts else None].append(one)
    seen: set[tuple[str, str]] = set()
    for root in [*below[None], *found]:
        stack = [(0, root)]
        while stack:
            depth, one = stack.pop()
            if (one.kind, one.name) in seen:
                continue
            seen.add((one.kind, one.name))
            yield depth, one
            inside = below[one.name] if one.kind == "cohort" else []
            stack += [(depth + 1, child) for child in reversed(inside)]


def _drawn(lines: list[tuple[int, _Branch]]) -> None:
    root = Tree(Text("."))
    path = [root]
    for depth, one in lines:
        branch = path[depth].add(Text("  ".join(_label(one))))
        path[depth + 1 :] = [branch]
    Console().print(root)


def _label(one: _Branch) -> Iterator[str]:
    yield one.name
    for cell in one.cells:
        if one.kind == "cohort":
            yield _("{flavor}: {nominal} GPU for all below").format(**cell)
            continue
        borrowed = _(" ({borrowed} borrowed)").format(**cell) if cell["borrowed"] else ""
        yield _("{flavor}: {used} of {nominal} GPU").format(**cell) + borrowed
