"""Members as processes of this machine: started in a group of their own, found again, stopped.

Between the agent and a member stands a small shell. It waits for the member and writes its exit
code to a file, so that nobody needs to be there when it ends. A member outlives its agent.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "GPUPLATFORM_MEMBER"
EXIT = "GPUPLATFORM_EXIT"  # as the shell below writes it
# The shell must not die of what its member is asked to do; a trap is not inherited, so the
# member itself does.
SHELL = """trap hit=1 TERM INT HUP
"$@" &
member=$!
hit=1
while [ -n "$hit" ]; do hit=; wait "$member"; code=$?; done
printf '%s' "$code" > "$GPUPLATFORM_EXIT.new" && mv "$GPUPLATFORM_EXIT.new" "$GPUPLATFORM_EXIT"
"""


@dataclass(frozen=True, slots=True)
class Start:
    """What to start: a command, the values of its environment, and where it runs."""

    member: str
    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path


class Processes:
    """The processes of one agent; its folder holds their logs and exit codes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, start: Start) -> tuple[int, str]:
        """Start a member; return its process number and when the process began."""
        self._file(start.member, "exit").unlink(missing_ok=True)
        with self._file(start.member, "log").open("ab") as log:
            child = subprocess.Popen(  # noqa: S603  # to run what was submitted is its task
                ["/bin/sh", "-c", SHELL, "member", *start.command],
                cwd=start.directory,
                env={**start.environment, **self._told(start.member)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children[child.pid] = child
        return child.pid, began(child.pid)

    def runs(self, pid: int, begun: str) -> bool:
        """Return whether a process still runs, and is the one that it was."""
        if child := self._children.get(pid):
            child.poll()  # takes a dead child off the list of processes
        return bool(pid) and began(pid) == begun != ""

    def exit_code(self, member: str) -> int | None:
        """Return how a member ended; None: nobody saw it."""
        try:
            return int(self._file(member, "exit").read_text())
        except (OSError, ValueError):
            return None

    def signal(self, pid: int, begun: str, number: signal.Signals) -> None:
        """Send a signal to a member and to everything that it has started.

        Where its own process has ended, to what it has left; never to another one of its number.
        """
        if pid <= 1 or began(pid) not in ("", begun):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)

    def close(self) -> None:
        """Wait for the processes that were started here and have been told to end."""
        for child in self._children.values():
            child.wait()

    def forget(self, member: str, pid: int) -> None:
        """Drop what is left of a member that is over; its log stays."""
        if child := self._children.pop(pid, None):
            child.wait()  # it is dead, and now off the list of processes, too
        self._file(member, "exit").unlink(missing_ok=True)

    def find(self, member: str) -> int:
        """Return the process of a member that was started just before its agent died; 0: none.

        Its name alone would not do: another agent of this machine, with a folder of its own, may
        run a member of that name.
        """
        wanted = {f"{name}={value}".encode() for name, value in self._told(member).items()}
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                pid = int(path.parent.name)
                if wanted <= set(path.read_bytes().split(b"\0")) and os.getpgid(pid) == pid:
                    return pid
        return 0

    def _told(self, member: str) -> dict[str, str]:
        return {MARK: member, EXIT: str(self._file(member, "exit"))}

    def _file(self, member: str, kind: str) -> Path:
        return self._folder / f"{member.replace('/', '_')}.{kind}"


def began(pid: int) -> str:
    """Return when a process began, as its kernel counts; "" where it does not run."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _began_elsewhere(pid) if not Path("/proc/self/stat").exists() else ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]


def _began_elsewhere(pid: int) -> str:
    """Return the same where there is no /proc."""
    command = ["/bin/ps", "-o", "lstart=,state=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    text = done.stdout.strip()
    return "" if not text or text.split()[-1].startswith("Z") else text
