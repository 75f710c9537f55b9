"""Commands about promises: what there is, what is free, and how it is changed."""

import difflib
from collections.abc import Iterator
from gettext import gettext as _
from typing import Annotated, Any

import typer
import yaml

from gpuplatform.client.documents import (
    KINDS,
    MANIFESTS,
    PUTTABLE,
    address_of,
    is_manifest,
    read_documents,
    read_text,
    without_version,
)
from gpuplatform.client.failures import Exit, Failed
from gpuplatform.client.options import DryRun, Out, Reason, connect
from gpuplatform.client.output import Column, Format, column, say, show, show_one
from gpuplatform.client.server import Server, quoted
from gpuplatform.client.submitting import File
from gpuplatform.client.workloads import COLUMNS, find, told

Kind = Annotated[str, typer.Argument(help=", ".join(names[0] for names in KINDS.values()))]


def _flavors(row: Any) -> str:
    return ", ".join(
        f"{flavor['flavor']} {cell['resource'].rsplit('/')[-1]}={cell['nominal']}"
        for group in row["groups"]
        for flavor in group["flavors"]
        for cell in flavor["quotas"]
    )


BY_KIND: dict[str, tuple[Column, ...]] = {
    "workloads": COLUMNS,
    "cluster-queues": (
        *(column("NAME"), column("TEAM"), column("COHORT"), column("STOP", "stop_policy")),
        Column("FLAVORS", _flavors),
        column("VERSION", wide=True),
    ),
    "local-queues": (column("NAMESPACE"), column("NAME"), column("QUEUE", "cluster_queue")),
    "cohorts": (column("NAME"), column("PARENT"), column("FAIRNESS"), column("VERSION")),
    "flavors": (column("NAME"), column("TOPOLOGY"), column("POLICY"), column("VERSION")),
    "topologies": (column("NAME"), Column("LEVELS", lambda row: ", ".join(row["levels"]))),
    "teams": (column("NAME"), column("DISPLAY", "display_name"), column("ACCOUNTING")),
    "nodes": (column("NAME"), column("FLAVOR"), column("STATE")),
    "admission-checks": (column("NAME"), column("KIND"), column("VERSION")),
}
SERVERS_OWN = ("warnings", "dry_run")  # what an answer says beside the object


def get(
    kind: Kind,
    name: Annotated[str, typer.Argument(help="Left out: all of them.")] = "",
    output: Out = Format.TABLE,
) -> None:
    """Print objects; `-o yaml` prints manifests as Kueue spells them, for `gpuctl apply`.

    Example: gpuctl get queue cq-vision -o yaml > queue.yaml
    """
    server, address = connect(), address_of(kind)
    columns = BY_KIND[address]
    key = find(server, name)["uid"] if name and address == "workloads" else name
    path = f"{address}/{_inside(address, key)}/" if name else f"{address}/"
    if output is Format.YAML:
        typer.echo(server.manifests(path), nl=False)
    elif not name:
        show(server.rows(path), columns, output)
    elif output is Format.JSON:
        row = server.get(path)
        named = {"kind": KINDS[address][0]} if address in PUTTABLE else {}
        show_one({**named, **row}, output, list)
    else:
        show([server.get(path)], columns, output)


def apply(
    file: File, dry_run: DryRun = False, reason: Reason = "", output: Out = Format.TABLE
) -> None:
    """Make promises be what a file says: as `gpuctl get -o yaml` prints them, or manifests.

    A document with a `version` changes that version and no later one.
    """
    server, text = connect(), read_text(file)
    documents = read_documents(text, file)
    query = {"dry_run": "All" if dry_run else "", "reason": reason}
    if any(map(is_manifest, documents)):
        results = server.ask("POST", "manifests/", parameters=query, text=text).json()["results"]
    else:
        results = [_put(server, document, query) for document in documents]
    show(results, (column("KIND"), column("NAME"), column("VERDICT"), column("ACTION")), output)
    for one in results:
        say(*told(one["diagnostics"]))
    if refused := [one["name"] for one in results if one["verdict"] == "rejected"]:
        raise Failed(Exit.REJECTED, _("Rejected: {names}.").format(names=", ".join(refused)))


def _put(server: Server, document: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
    path, body, version = _target(document)
    headers = {"If-Match": f'"v{version}"'} if version is not None else {}
    answer = server.ask("PUT", path, parameters=query, headers=headers, body=body)
    row = answer.json()
    created, changed = answer.status_code == 201, row["version"] != version  # noqa: PLR2004
    return {
        "kind": document["kind"],
        "name": row["name"],
        "verdict": "accepted",
        "action": "created" if created else "changed" if changed else "unchanged",
        "diagnostics": row["warnings"],
    }


def _inside(address: str, key: str) -> str:
    """Return what an object is called below the list of its kind; a local queue by two names."""
    parts = key.split("/", 1) if address == "local-queues" else [key]
    return "/".join(map(quoted, parts))


def _target(document: dict[str, Any]) -> tuple[str, dict[str, Any], int | None]:
    """Return the address of a document of ours, its body, and the version it was read at."""
    body = {key: value for key, value in document.items() if key not in SERVERS_OWN}
    address, version = address_of(str(body.pop("kind", ""))), body.pop("version", None)
    if address not in PUTTABLE or not body.get("name"):
        words = _("A document needs a name and a kind that can be applied: {kinds}.")
        raise Failed(Exit.USAGE, words.format(kinds=", ".join(KINDS[a][0] for a in PUTTABLE)))
    return f"{address}/{quoted(body['name'])}/", body, version


def diff(file: File) -> None:
    """Print how a file differs from what stands; exit code 1 where it does.

    Manifests are compared as `gpuctl get -o yaml` prints them.
    """
    server, differs = connect(), False
    for document in read_documents(read_text(file), file):
        path, before, after = _compared(server, document)
        lines = list(_differences(before, after, path))
        differs = differs or bool(lines)
        for line in lines:
            typer.echo(line)
    if differs:
        raise Failed(Exit.ERROR)


def _compared(
    server: Server, document: dict[str, Any]
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the address of a document's object, what stands there, and what the file says."""
    if not is_manifest(document):
        path, body, _version = _target(document)
        return path, _standing(server, path), body
    path = _address(server, document)
    try:
        standing = yaml.safe_load(server.manifests(path)) if path else {}
    except Failed as failure:
        if failure.code is not Exit.NOT_FOUND:
            raise
        standing = {}
    before = without_version(standing) if standing else {}
    return path or str(document["metadata"]["name"]), before, without_version(document)


def _address(server: Server, manifest: dict[str, Any]) -> str:
    """Return the address of a manifest's object; "" for work that is not there."""
    kind, metadata = str(manifest.get("kind")), manifest.get("metadata") or {}
    name, namespace = metadata.get("name"), metadata.get("namespace", "default")
    if kind not in MANIFESTS or not name:
        words = _("{kind} {name} cannot be compared; try `gpuctl apply --dry-run`.")
        raise Failed(Exit.USAGE, words.format(kind=kind, name=name))
    address = MANIFESTS[kind]
    if address != "workloads":
        inside = f"{quoted(namespace)}/" if address == "local-queues" else ""
        return f"{address}/{inside}{quoted(name)}/"
    try:
        return f"{address}/{find(server, f'{namespace}/{name}')['uid']}/"
    except Failed as failure:
        if failure.code is not Exit.NOT_FOUND:
            raise
        return ""


def _standing(server: Server, path: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = server.get(path)
    except Failed as failure:
        if failure.code is not Exit.NOT_FOUND:
            raise
        return {}
    found.pop("version", None)
    return found


def _differences(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[str]:
    before, after = (yaml.safe_dump(one).splitlines() if one else [] for one in (old, new))
    names = path, _("{path} (file)").format(path=path)
    return difflib.unified_diff(before, after, *names, lineterm="")


def stop(
    kind: Kind,
    name: str,
    drain: Annotated[bool, typer.Option("--drain", help="Evict what runs as well.")] = False,
    reason: Reason = "",
) -> None:
    """Stop a queue: nothing new is admitted.

    Example: gpuctl stop queue cq-vision --drain
    """
    _set_stop(kind, name, "HoldAndDrain" if drain else "Hold", reason)


def resume(kind: Kind, name: str, reason: Reason = "") -> None:
    """Let a stopped queue admit again."""
    _set_stop(kind, name, "None", reason)


def _set_stop(kind: str, name: str, policy: str, reason: str) -> None:
    if address_of(kind) != "cluster-queues":
        raise Failed(Exit.USAGE, _("Only a queue can be stopped."))
    server, path = connect(), f"cluster-queues/{quoted(name)}/"
    row = server.get(path)
    seen = {"If-Match": f'"v{row.pop("version")}"'}
    body = row | {"stop_policy": policy}
    answer = server.ask("PUT", path, parameters={"reason": reason}, headers=seen, body=body)
    say(*told(answer.json()["warnings"]))
    words = _("{name} admits again.") if policy == "None" else _("{name} is stopped.")
    say(words.format(name=name))
