"""The command line: which word leads to which function, and how a command ends."""

import os
import sys
from collections.abc import Callable, Sequence

import typer

from gpuplatform.client import account, capacity, machines, money, promises, submitting, workloads
from gpuplatform.client.failures import Exit, Failed
from gpuplatform.client.options import Out
from gpuplatform.client.output import Format, say

HELP = """Submit work to the GPU platform, see why it waits, and what it costs.

Begin with `gpuctl login https://gpu.example.org`, or set GPUCTL_URL and GPUCTL_TOKEN.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 not found, 4 conflict or stale, 5 rejected by a
rule, 6 not signed in or not allowed, 7 time over (--wait), 8 asked too often.
"""
app = typer.Typer(
    help=HELP,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
lists = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List what you may see.")
COMMANDS: tuple[Callable[..., None], ...] = (
    *(account.login, account.whoami, submitting.submit),
    *(workloads.explain, workloads.deactivate, workloads.reactivate, workloads.prioritize),
    *(workloads.cancel, capacity.avail, capacity.tree, promises.get, promises.apply),
    *(promises.diff, promises.stop, promises.resume, machines.nodes, machines.cordon),
    *(machines.drain, machines.uncordon, money.bill, money.cost, account.version),
)
for _command in COMMANDS:
    app.command()(_command)
app.add_typer(lists, name="list")
app.add_typer(account.servers, name="config")
lists.command("workloads")(workloads.list_workloads)


@lists.command("queues")
def list_queues(output: Out = Format.TABLE) -> None:
    """List the queues with what they are promised."""
    promises.get("queue", output=output)


@lists.command("nodes")
def list_nodes(output: Out = Format.TABLE) -> None:
    """List the machines."""
    machines.nodes(output=output)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return its exit code."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="gpuctl")
    except Failed as failure:
        say(*failure.lines)
        return int(failure.code)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(Exit.ERROR)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read us has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(Exit.OK)


def run() -> None:
    """Be the program ``gpuctl``."""
    sys.exit(main())
