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
    _set(name, schedulable=False, reason=reason, dry_run=dry_run)
    say(_("{name} is cordoned.").format(name=name))


def uncordon(name: Name, reason: Reason = "", dry_run: DryRun = False) -> None:
    """Let new pods onto a machine again."""
    _set(name, schedulable=True, reason=reason, dry_run=dry_run)
    say(_("{name} takes pods again.").format(name=name))


def _set(name: str, *, schedulable: bool, reason: str, dry_run: bool) -> None:
    body = {"schedulable": schedulable} | ({"reason": reason} if reason else {})
    query = {"dry_run": "All" if dry_run else ""}
    answer = connect().ask("PATCH", f"nodes/{quoted(name)}/", parameters=query, body=body)
    say(*told(answer.json()["warnings"]))
