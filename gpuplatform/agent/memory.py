"""What the agent must not forget: its epoch, its numbers, unsent reports, and its members.

One file in the agent's folder, replaced as a whole: an agent that is killed at any instant goes on
from what it wrote last. A change of a member and the report about it are one write.
"""

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FILE, LOCK = "agent.json", "lock"


class Taken(Exception):
    """Another agent works in this folder."""


@dataclass
class Kept:
    """One member that was started. ``pid`` 0: it was about to be.

    ``begun``: when its process began, as the kernel says it, so that another process with the
    same number is not taken for it. ``told``: the last report about it. ``stop_at`` and
    ``kill_at``: when it was asked to stop, and when it no longer is.
    """

    member: str
    pid: int = 0
    begun: str = ""
    gpus: list[int] = field(default_factory=list)
    told: str = ""
    stop_at: float | None = None
    kill_at: float | None = None


@dataclass
class Memory:
    """The agent's state. ``gone``: members that are over; they are never started again."""

    folder: Path
    epoch: int | None = None
    sequence: int = 0
    outbox: list[dict[str, Any]] = field(default_factory=list)
    members: dict[str, Kept] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)

    def report(self, kind: str, **facts: Any) -> None:
        """Put the next report into the outbox; :meth:`save` makes it last."""
        self.sequence += 1
        self.outbox.append({"sequence": self.sequence, "kind": kind, **facts})

    def taken(self, sequence: int) -> None:
        """Forget the reports that the platform has taken."""
        self.outbox = [row for row in self.outbox if row["sequence"] > sequence]
        self.sequence = max(self.sequence, sequence)

    def begin(self, epoch: int) -> None:
        """Begin a new epoch: what is unsent is numbered anew."""
        self.epoch, self.sequence, unsent = epoch, 0, self.outbox
        self.outbox = []
        for row in unsent:
            self.report(**{key: value for key, value in row.items() if key != "sequence"})

    def save(self) -> None:
        """Write everything, whole or not at all."""
        told = {
            "epoch": self.epoch,
            "sequence": self.sequence,
            "outbox": self.outbox,
            "members": [asdict(kept) for kept in self.members.values()],
            "gone": self.gone,
        }
        fresh = self.folder / f"{FILE}.new"
        with fresh.open("w") as file:
            json.dump(told, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.folder / FILE)


def open_memory(folder: Path) -> tuple[Memory, Any]:
    """Return what is remembered in a folder, and a lock to hold while it is in use.

    Raises:
        Taken: another process holds it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = (folder / LOCK).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise Taken(str(folder)) from error
    memory = Memory(folder)
    if (folder / FILE).exists():
        told = json.loads((folder / FILE).read_text())
        members = {row["member"]: Kept(**row) for row in told.pop("members")}
        memory = Memory(folder, **told, members=members)
    return memory, lock
