"""Options that many commands share, and the server that all of them ask."""

from collections.abc import Callable
from typing import Annotated

import httpx
import typer

from gpuplatform.client import config
from gpuplatform.client.failures import Exit, Failed
from gpuplatform.client.output import Format, is_watched, say
from gpuplatform.client.server import Server

Out = Annotated[
    Format, typer.Option("--output", "-o", help="How data is printed.", show_default=True)
]
Reason = Annotated[str, typer.Option("--reason", help="Why; it stands in the audit trail.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Decide everything, keep nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

# Tests put an application here that is called without a network.
transport: Callable[[], httpx.BaseTransport | None] = lambda: None  # noqa: E731


def connect() -> Server:
    """Return the server that the environment or the configuration names."""
    return Server(config.read().chosen(), transport())


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person to confirm; a script must have said ``--yes``.

    Raises:
        Failed: not confirmed.
    """
    if yes:
        return
    if not is_watched():
        raise Failed(Exit.USAGE, f"{question} Say so with --yes.")
    if not typer.confirm(question, err=True):
        say("Nothing was done.")
        raise Failed(Exit.ERROR)
