"""What a member runs, as its workload's document says it. Pure.

Documents of many kinds hold pod templates: of one kind of pod, of tasks by name, of replica types
by key. The template of a pod set is the one that is named as the pod set is, else the only one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

COMMAND = "gpuplatform.io/command"  # an annotation: a line for the shell
DEEPEST = 12
KEPT = ("image", "command", "args", "workingDir")


def container_of(template: object, pod_set: str) -> dict[str, Any] | None:
    """Return the first container of a pod set's template: image, command, args, folder, env.

    Values of the environment that stand elsewhere (secrets, fields) are left out: they are not
    known here. None: the document says nothing that could be run.
    """
    found = list(_templates(template, "", 0))
    named = [spec for name, spec in found if name == pod_set]
    several = named or ([spec for _name, spec in found] if len(found) == 1 else [])
    return _container(several[0]) if several else None


def _templates(value: object, name: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every pod spec of a document with the name of what holds it, in document order."""
    if depth > DEEPEST:
        return
    if isinstance(value, list):
        for item in value:
            yield from _templates(item, name, depth + 1)
    elif isinstance(value, Mapping):
        if _containers(value):
            yield name, value
            return
        own = value.get("name", value.get("groupName"))
        name = own if isinstance(own, str) else name
        for key, item in value.items():
            inner = str(key).lower() if key not in ("template", "spec") else name
            yield from _templates(item, inner, depth + 1)


def _containers(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = value.get("containers")
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _container(spec: Mapping[str, Any]) -> dict[str, Any]:
    row = _containers(spec)[0]
    env = row.get("env")
    pairs = [e for e in env if isinstance(e, Mapping)] if isinstance(env, list) else []
    told = {str(e.get("name")): str(e["value"]) for e in pairs if e.get("value") is not None}
    return {**{key: row[key] for key in KEPT if key in row}, "env": told}
