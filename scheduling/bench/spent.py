"""Seconds of processor time beside the clock's, and memory: what a bench says it has needed."""

import os
import time
from pathlib import Path

from django.db import connection


class Spent:
    """What has been spent since it was made. Waiting for others on a busy machine is not in it."""

    def __init__(self) -> None:
        self._worker = time.process_time()
        self._session = _session()
        self._database = seconds_of(self._session)

    def so_far(self) -> dict[str, float]:
        """Return the CPU seconds by whose they are; the database's where it is on this machine."""
        spent = {"CPU s of the worker": time.process_time() - self._worker}
        if self._session is not None:
            spent["CPU s of the database"] = seconds_of(self._session) - self._database
        return spent


def _session() -> int | None:
    """Return the process that serves our session, if it runs here."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (number,) = cursor.fetchone()
    return number if "postgres" in _stat(number) else None


def _stat(number: int) -> str:
    try:
        return Path(f"/proc/{number}/stat").read_text("utf-8")
    except OSError:
        return ""


def seconds_of(number: int | None) -> float:
    """Return the CPU seconds of a process on this machine; 0 where there is none."""
    fields = _stat(number).rpartition(")")[2].split() if number else []
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def most_mib() -> float:
    """Return the most memory that this process has needed since its program began, in MiB.

    Not ``ru_maxrss``: a child's begins with what its parent held when it was started.
    """
    status = Path("/proc/self/status").read_text("ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
