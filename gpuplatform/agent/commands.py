"""What a member's process is told: its command and the values of its environment."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuplatform.agent.processes import Start

# Of the agent's own environment a member gets these and no others: no secret by accident.
INHERITED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "USER",
    "LOGNAME",
    "LD_LIBRARY_PATH",
    "TMPDIR",
)
FIRST_PORT, PORTS = 20_000, 10_000


class NothingToRun(Exception):
    """The workload says nothing that could be run here."""


def start_of(wanted: Mapping[str, Any], gpus: Sequence[int], folder: Path) -> Start:
    """Return what starts a member that the platform wants.

    Raises:
        NothingToRun: neither an annotation nor a container with a command.
    """
    container = wanted.get("container") or {}
    directory = Path(str(container.get("workingDir") or folder))
    environment = _inherited() | {str(k): str(v) for k, v in (container.get("env") or {}).items()}
    environment |= _told(wanted, gpus)
    command = _command(wanted, container, environment)
    return Start(wanted["member"], command, environment, directory)


def _command(
    wanted: Mapping[str, Any], container: Mapping[str, Any], environment: Mapping[str, str]
) -> list[str]:
    if line := wanted.get("command"):
        return ["/bin/sh", "-c", str(line)]
    parts = [*(container.get("command") or []), *(container.get("args") or [])]
    if not container.get("command") or not all(isinstance(part, str) for part in parts):
        raise NothingToRun("no gpuplatform.io/command, and no container with a command")
    return [_expanded(part, environment) for part in parts]


def _expanded(part: str, environment: Mapping[str, str]) -> str:
    """Return an argument with ``$(NAME)`` replaced, as Kubernetes does."""
    for name, value in environment.items():
        part = part.replace(f"$({name})", value)
    return part


def _inherited() -> dict[str, str]:
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


def _told(wanted: Mapping[str, Any], gpus: Sequence[int]) -> dict[str, str]:
    """Return who the member is, who the others are, and which GPUs are its own."""
    gang, workload = wanted["gang"], wanted["workload"]
    return {
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
        "NVIDIA_VISIBLE_DEVICES": ",".join(map(str, gpus)) or "void",
        "RANK": str(wanted["rank"]),
        "WORLD_SIZE": str(gang["size"]),
        "MASTER_ADDR": gang["leader"],
        "MASTER_PORT": str(FIRST_PORT + wanted["admission"] % PORTS),
        "GPUPLATFORM_WORKLOAD": f"{workload['namespace']}/{workload['name']}",
        "GPUPLATFORM_UID": workload["uid"],
        "GPUPLATFORM_ATTEMPT": str(wanted["attempt"]),
        "GPUPLATFORM_POD_SET": wanted["pod_set"],
        "GPUPLATFORM_NODE": wanted["node"],
        "GPUPLATFORM_SLOT": str(wanted["slot"]),
        "GPUPLATFORM_RANK": str(wanted["rank"]),
        "GPUPLATFORM_GANG_SIZE": str(gang["size"]),
        "GPUPLATFORM_GANG_NODES": ",".join(gang["nodes"]),
    }


def spelled(command: Sequence[str]) -> str:
    """Return a command as one would type it."""
    return shlex.join(command)
