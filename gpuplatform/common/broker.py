"""The embedded broker: kombu's folder of files, with messages that appear whole or not at all.

kombu opens a message's file and then writes it; a reader that looks in between finds nothing in
it, cannot decode it, and its worker dies. Here a file gets its name only when it is complete.
"""

import os
import uuid
from pathlib import Path
from time import monotonic
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps


def write_whole(path: Path, text: str) -> None:
    """Let ``path`` appear with all of ``text`` in it, in one step."""
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4()}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)  # noqa: PTH105  # the name says that it is one step


class Channel(filesystem.Channel):
    """A channel whose readers never see half a file."""

    def _put(  # type: ignore[override]  # the stubs of its two bases disagree
        self, queue: str, payload: dict[str, Any], **_kwargs: Any
    ) -> None:
        name = f"{round(monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        write_whole(Path(self.data_folder_out) / name, dumps(payload))

    def _queue_bind(self, exchange: str, *rest: Any) -> None:
        table: Path = self._exchange_file(exchange)  # type: ignore[attr-defined]  # not in stubs
        if not table.exists():
            write_whole(table, "[]")
        super()._queue_bind(exchange, *rest)


class Transport(filesystem.Transport):
    """kombu's transport over such channels."""

    Channel = Channel


def use_whole_files() -> None:
    """Let ``filesystem://`` mean this transport in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
