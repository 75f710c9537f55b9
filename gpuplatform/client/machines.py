"""Commands about machines."""

from gettext import gettext as _
from typing import Annotated

import typer

from gpuplatform.client.options import DryRun, Out, Reason, connect
from gpuplatform.client.output import Format, column, say, show
from gpuplatform.client.server import quoted
from gpuplatform.client.workloads import told

COLUMNS = (
    column("NAME"),
    column("FLAVOR"),
    column("STATE"),
    column("GPUS", right=True),
    column("USED", "gpus_used", right=True),
    column("FREE", "gpus_free", right=True),
    column("KEPT", "gpus_kept", right=True),
)
Name = Annotated[str, typer.Argument(help="A node.")]


def nodes(
    name: Annotated[str, typer.Option(help="A part of the name.")] = "",
    output: Out = Format.TABLE,
) -> None:
    """List the machines and how many of their GPUs are free."""
    show(connect().rows("nodes/", name=name), COLUMNS, output)


def cordon(name: Name, reason: Reason = "", dry_run: DryRun = False) -> None:
    """Keep new pods off a machine; what runs there stays."""
    done = _("{name} is cordoned.")
    _set(name, done, schedulable=False, reason=reason, dry_run=dry_run)


def drain(name: Name, reason: Reason = "", dry_run: DryRun = False) -> None:
    """Keep new pods off a machine, and send what stands there elsewhere.

    With --dry-run: who would have to go, and what would be lost.

    Example: gpuctl drain gpu-node-7 --reason "New fans" --dry-run
    """
    done = _("{name} is drained.")
    _set(name, done, schedulable=False, drain=True, reason=reason, dry_run=dry_run)


def uncordon(name: Name, reason: Reason = "", dry_run: DryRun = False) -> None:
    """Let new pods onto a machine again."""
    done = _("{name} takes pods again.")
    _set(name, done, schedulable=True, reason=reason, dry_run=dry_run)


def _set(
    name: str, done: str, *, schedulable: bool, reason: str, dry_run: bool, drain: bool = False
) -> None:
    """Ask for it, and say what that means; ``done``: what is said once it is so."""
    body = {"schedulable": schedulable} | ({"reason": reason} if reason else {})
    body |= {"drain": True} if drain else {}
    query = {"dry_run": "All" if dry_run else ""}
    service, address = connect(), f"nodes/{quoted(name)}/"
    version = service.ask("GET", address).json()["version"]
    seen = {"If-Match": f'"v{version}"'}
    answer = service.ask("PATCH", address, parameters=query, body=body, headers=seen)
    said = _("This was a dry run: nothing was changed.") if dry_run else done
    say(*told(answer.json()["warnings"]), said.format(name=name))
