"""``gpuctl submit``: manifests in, an answer for each, and a wait for what was made."""

import time
from collections.abc import Iterator
from gettext import gettext as _
from typing import Annotated, Any

import typer

from gpuplatform.client import words
from gpuplatform.client.documents import is_manifest, read_documents, read_text
from gpuplatform.client.failures import Exit, Failed
from gpuplatform.client.options import DryRun, Out, connect
from gpuplatform.client.output import Format, column, say, show
from gpuplatform.client.server import Server
from gpuplatform.client.workloads import told

COLUMNS = (
    column("KIND"),
    column("NAME"),
    column("VERDICT"),
    column("ACTION"),
    column("WORKLOADS"),
)
POLL_S = 1.0
File = Annotated[str, typer.Option("--filename", "-f", help="A file; - is standard input.")]


def submit(
    file: File,
    dry_run: DryRun = False,
    wait: Annotated[bool, typer.Option("--wait", help="Until it runs or has ended.")] = False,
    timeout: Annotated[int, typer.Option(help="Of --wait, in seconds.")] = 600,
    idempotency_key: Annotated[
        str, typer.Option(help="The same key submits once, however often it is sent.")
    ] = "",
    atomic: Annotated[bool, typer.Option("--atomic", help="All documents or none.")] = False,
    output: Out = Format.TABLE,
) -> None:
    """Submit manifests of Kubernetes, Kueue or Volcano, or workloads as REST writes them.

    Examples:
      gpuctl submit -f job.yaml --dry-run
      cat jobs.yaml | gpuctl submit -f - --wait --timeout 60
    """
    server, text = connect(), read_text(file)
    documents = read_documents(text, file)
    dry = {"dry_run": "All" if dry_run else ""}
    if any(map(is_manifest, documents)):
        key = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        query = {**dry, "atomic": "true" if atomic else ""}
        answer = server.ask("POST", "manifests/", parameters=query, headers=key, text=text)
        results = answer.json()["results"]
    else:
        results = list(_workloads(server, documents, dry, idempotency_key))
    _show(results, output, dry_run=dry_run)
    if wait and not dry_run:
        _wait(server, [uid for one in results for uid in one["workloads"]], timeout)


def _workloads(
    server: Server, documents: list[dict[str, Any]], dry: dict[str, str], key: str
) -> Iterator[dict[str, Any]]:
    """Submit workloads written as REST reads them, one by one."""
    for number, document in enumerate(documents):
        headers = {"Idempotency-Key": f"{key}-{number}" if number else key} if key else {}
        row = server.ask(
            "POST", "workloads/", parameters=dry, headers=headers, body=document
        ).json()
        yield {
            "kind": "Workload",
            "name": f"{document.get('namespace')}/{document.get('name')}",
            "verdict": "accepted",
            "action": "created",
            "workloads": [row["uid"]] if "uid" in row else [],
            "diagnostics": [*row["warnings"], *filter(None, [row.get("forecast")])],
        }


def _show(results: list[dict[str, Any]], output: Format, *, dry_run: bool) -> None:
    if dry_run:  # nothing is kept, so nothing can be asked for by its uid
        results = [{**one, "workloads": []} for one in results]
    shown = [{**one, "workloads": ", ".join(one["workloads"])} for one in results]
    shown = [{**one, "action": _would(one["action"])} for one in shown] if dry_run else shown
    rows = results if output in (Format.JSON, Format.YAML) else shown
    show(rows, COLUMNS, output)
    for one in results:
        say(*told(one["diagnostics"]))
    if refused := [one["name"] for one in results if one["verdict"] == "rejected"]:
        raise Failed(Exit.REJECTED, _("Rejected: {names}.").format(names=", ".join(refused)))


def _would(action: str) -> str:
    """Return what a dry run says instead of what was done."""
    words = {
        "created": _("dry run: would be created"),
        "changed": _("dry run: would be changed"),
        "unchanged": _("dry run: unchanged"),
    }
    return words.get(action, action)


def _wait(server: Server, uids: list[str], timeout: int) -> None:
    """Wait until each workload runs or has ended.

    Raises:
        Failed: the time is over, or one has failed or was taken out of the queue.
    """
    until = time.monotonic() + timeout
    left = list(uids)
    while left:
        rows = [server.get(f"workloads/{uid}/") for uid in left]
        for row in rows:
            _refuse_lost(row)
        left = [row["uid"] for row in rows if row["status"] in ("pending", "admitted")]
        if left and time.monotonic() > until:
            late = [row for row in rows if row["uid"] in left]
            reasons = [f"  {row['namespace']}/{row['name']}: {words.reason(row)}" for row in late]
            told_late = _("Not running after {timeout} s:").format(timeout=timeout)
            raise Failed(Exit.TIMEOUT, told_late, *reasons)
        time.sleep(min(POLL_S, max(0.0, until - time.monotonic())) if left else 0)


def _refuse_lost(row: dict[str, Any]) -> None:
    called = f"{row['namespace']}/{row['name']}"
    if row["outcome"] in ("failed", "cancelled"):
        raise Failed(Exit.ERROR, f"{called}: {row['outcome']}")
    if row["status"] == "inactive":
        raise Failed(Exit.REJECTED, _("{name} was taken out of its queue.").format(name=called))
