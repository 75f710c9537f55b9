"""Commands about work: submit, list, explain, deactivate, reactivate, cancel."""

from collections.abc import Iterable, Iterator
from gettext import gettext as _
from typing import Annotated, Any
from uuid import UUID

import typer

from gpuplatform.client import words
from gpuplatform.client.failures import Exit, Failed, first_of
from gpuplatform.client.following import follow
from gpuplatform.client.options import Out, Reason, Yes, confirm, connect
from gpuplatform.client.output import Column, Format, column, say, show, show_one
from gpuplatform.client.server import Server

Names = Annotated[list[str], typer.Argument(help="A uid, NAMESPACE/NAME, or NAME.")]
COLUMNS = (
    column("NAME"),
    column("TEAM"),
    column("QUEUE"),
    column("STATE", "status"),
    Column("SIZE", lambda row: words.gpus(row["gpus"]), right=True),
    column("POS", "position", right=True),
    Column("WAIT", words.waited, right=True),
    Column("REASON", words.reason),
    Column("AGE", lambda row: words.age(row["created_at"]), right=True),
    column("NAMESPACE", wide=True),
    column("KIND", wide=True),
    column("PRIORITY", wide=True, right=True),
    column("UID", wide=True),
)


def list_workloads(
    queue: Annotated[str, typer.Option("--queue", "-q", help="LocalQueues, with commas.")] = "",
    team: Annotated[str, typer.Option("--team", "-t", help="Teams, with commas.")] = "",
    state: Annotated[
        str, typer.Option("--state", "-s", help="pending,admitted,running,finished,inactive")
    ] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n")] = "",
    name: Annotated[str, typer.Option(help="A part of the name.")] = "",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on: a line for each that changes.")
    ] = False,
    output: Out = Format.TABLE,
) -> None:
    """List the workloads that you may see, newest first; all pages.

    Example: gpuctl list workloads -t vision --state pending -o csv
    """
    asked = {"queue": queue, "team": team, "status": state, "namespace": namespace, "name": name}
    if watch:
        follow(connect(), COLUMNS, output, **asked)
        return
    show(connect().rows("workloads/", **asked), COLUMNS, output)


def find(server: Server, name: str) -> dict[str, Any]:
    """Return the workload that ``name`` means: the live one where an ended one had the name.

    Raises:
        Failed: there is none, or there are several.
    """
    if _is_uid(name):
        found: dict[str, Any] = server.get(f"workloads/{name}/")
        return found
    namespace, _slash, own = name.rpartition("/")
    rows = server.rows("workloads/", name=own, namespace=namespace)
    called = [row for row in rows if row["name"] == own]
    live = [row for row in called if row["status"] != "finished"]
    meant = live or called[:1]  # of those that have ended, the newest
    if not meant:
        raise Failed(Exit.NOT_FOUND, _("There is no workload {name}.").format(name=name))
    if len(meant) > 1:
        shape = "  {namespace}/{name}  {kind}  {uid}"
        several = [shape.format(**row) for row in meant]
        told = _("{name} may be any of these; say NAMESPACE/NAME or the uid:").format(name=name)
        raise Failed(Exit.USAGE, told, *several)
    return meant[0]


def _is_uid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def explain(
    name: Annotated[str, typer.Argument(help="A uid, NAMESPACE/NAME, or NAME.")],
    output: Out = Format.TABLE,
) -> None:
    """Say why a workload waits and what would help, or where it runs.

    Example: gpuctl explain ns-vision/train-7
    """
    server = connect()
    row = server.get(f"workloads/{find(server, name)['uid']}/")
    show_one(row, output, lambda: _explained(row))


def _explained(row: dict[str, Any]) -> Iterator[str]:
    size = words.gpus(row["gpus"])
    yield f"{row['namespace']}/{row['name']}: {row['outcome'] or row['status']}, {size}"
    if row["status"] == "pending":
        yield from _waiting(row)
    if why := row.get("inactive"):
        yield f"  {why['code']}: {why['sentence']}"
        yield from (f"     {why[key]}" for key in ("message", "next_step") if why[key])
        yield _(
            "  It will not start by itself: gpuctl reactivate {name} lets it in again."
        ).format(name=f"{row['namespace']}/{row['name']}")
    for place in row["placements"]:
        yield _("  {pod_set}: {count} on {node}").format(**place)
    for warning in row["warnings"]:
        yield _("  warning {code}: {detail}").format(**{"detail": "", **warning})


def _waiting(row: dict[str, Any]) -> Iterator[str]:
    if row["position"]:
        told = _("  Number {position} in its queue, waiting for {wait}.")
        yield told.format(position=row["position"], wait=words.waited(row))
    if not row["blockers"]:
        yield _("  {reason}").format(reason=row["pending_reason"])
    for number, blocker in enumerate(row["blockers"], 1):
        yield f"  {number}. {blocker['code']}: {blocker['sentence']}"
        if blocker["next_step"]:
            yield f"     {blocker['next_step']}"
    if starts := (row["reservation"] or {}).get("starts_at"):
        yield _("  Room is reserved for {instant}.").format(instant=starts)


def cancel(names: Names, reason: Reason = "", yes: Yes = False) -> None:
    """End workloads; their quota and nodes are free once their pods are gone.

    Example: gpuctl cancel train-7 train-8 --yes
    """
    _each(names, _("cancelled"), yes=yes, method="DELETE", parameters={"reason": reason})


def deactivate(names: Names, reason: Reason = "", yes: Yes = False) -> None:
    """Take workloads out of their queue; what runs is stopped and gives back what it holds."""
    _each(names, _("deactivated"), yes=yes, body={"active": False, "reason": reason})


def reactivate(names: Names, reason: Reason = "", yes: Yes = False) -> None:
    """Let workloads into their queue again."""
    _each(names, _("reactivated"), yes=yes, body={"active": True, "reason": reason})


def prioritize(
    names: Names,
    priority: Annotated[int, typer.Option("--to", help="The higher, the sooner.")],
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Change the priority of workloads that have not ended."""
    _each(names, _("changed"), yes=yes, body={"priority": priority, "reason": reason})


def _each(
    names: list[str],
    done: str,
    *,
    yes: bool,
    method: str = "PATCH",
    parameters: dict[str, object] | None = None,
    body: dict[str, Any] | None = None,
) -> None:
    """Do the same to each workload; what fails does not keep the others from it."""
    server = connect()
    rows = [find(server, name) for name in names]
    if len(rows) > 1:
        confirm(_("{n} workloads?").format(n=len(rows)), yes=yes)
    sent = {key: value for key, value in (body or {}).items() if value != ""}
    failures = []
    for row in rows:
        called = f"{row['namespace']}/{row['name']}"
        try:
            path = f"workloads/{row['uid']}/"
            server.ask(method, path, parameters=parameters, body=sent or None)
            say(f"{called} {done}")
        except Failed as failure:
            failures.append(Failed(failure.code, *(f"{called}: {line}" for line in failure.lines)))
    if failed := first_of(failures):
        raise failed


def told(diagnostics: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield findings of the server as lines."""
    for finding in diagnostics:
        where = f" ({finding['path']})" if finding.get("path") else ""
        sentence = finding.get("detail") or finding.get("sentence") or ""
        yield f"  {finding.get('severity', '')} {finding['code']}: {sentence}{where}"
