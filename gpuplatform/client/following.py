"""Follow workloads as they change: one line for each, until somebody has seen enough."""

import json
import sys
from collections.abc import Iterator, Sequence
from gettext import gettext as _
from typing import Any

from gpuplatform.client.failures import Failed
from gpuplatform.client.output import Column, Format, say, show
from gpuplatform.client.server import Server

GONE = 410


def follow(server: Server, columns: Sequence[Column], form: Format, **asked: str) -> None:
    """Print each row as it stands, and again when it has changed; of one that left, its names."""
    for kind, row in _events(server, **asked):
        if form is Format.JSON:
            sys.stdout.write(f"{json.dumps({'event': kind, 'object': row}, ensure_ascii=False)}\n")
        elif form is Format.NAME:
            sys.stdout.write(f"{row['name']}\n")
        elif kind == "deleted":
            say(_("{namespace}/{name} has left this list.").format(**row))
        else:
            show([row], columns, form)
        sys.stdout.flush()


def _events(server: Server, **asked: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (event, row); a stream that ends is taken up where it ended, or begun anew."""
    mark = ""
    while True:
        try:
            for kind, data, at in server.stream("workloads/", mark, watch="1", **asked):
                mark = at or mark
                if kind == "gone":
                    mark = ""
                elif kind != "bookmark":
                    yield kind, json.loads(data)
        except Failed as failure:
            if failure.status != GONE:
                raise
            mark = ""
