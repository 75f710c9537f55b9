"""From a source's row, and the environment's secret, to something that answers questions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from django.conf import settings

from finops.models import Source
from finops.models.sources import SourceKind
from finops.sources.failures import SourceError
from finops.sources.http import Address, Asker, Connection, Replay
from finops.sources.litellm import scrubbed
from finops.sources.litellm_reader import LiteLLMApiReader, LiteLLMTablesReader
from finops.sources.litellm_tables import Tables
from finops.sources.opencost import Dimensions, sanitised
from finops.sources.opencost_reader import OpenCostReader
from finops.sources.prometheus_reader import PrometheusReader
from finops.sources.recording import Recording
from finops.sources.rows import Reading
from finops.sources.windows import Window
from finops.specs import OPTIONS


class Reader(Protocol):
    """Reads a window of one source."""

    def read(self, window: Window) -> Reading:
        """Return what the source says about the window."""


def secret_name(source: str, what: str) -> str:
    """Return the variable of the environment that holds a secret of a source."""
    return f"SOURCE_{source.upper().replace('-', '_')}_{what}"


def secret(source: Source, what: str) -> str:
    """Return a secret of the source, "" where the environment has none."""
    found: str = settings.SOURCE_SECRETS.get(secret_name(source.name, what), "")
    return found


def address_of(source: Source) -> Address:
    """Return where a source is and how to prove who asks."""
    token, user = secret(source, "TOKEN"), secret(source, "USER")
    return Address(
        source.url,
        allowed_hosts=frozenset(settings.SOURCE_HOSTS),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        basic=(user, secret(source, "PASSWORD")) if user else None,
    )


@contextmanager
def opened(
    source: Source, recording: Recording, before: Callable[[], None] = lambda: None
) -> Iterator[Reader]:
    """Yield a reader of the source that records what is answered.

    Raises:
        SourceError: its address is not allowed, or a secret that it needs is not there.
    """
    if source.kind == SourceKind.LITELLM_DATABASE:
        with Tables(_needed(source, "DSN"), recording, before=before) as tables:
            yield _reader(source, tables)
        return
    kept = scrubbed if source.kind == SourceKind.LITELLM_API else as_it_is
    with Connection(address_of(source), recording, before=before, kept=kept) as connection:
        yield _reader(source, connection)


def replayed(source: Source, recording: Recording) -> Reader:
    """Return a reader of what a source answered before."""
    return _reader(source, Replay(recording))


def option(source: Source, name: str) -> Any:
    """Return an option of the source, or its default."""
    return source.options.get(name, OPTIONS[source.kind][name])


def _reader(source: Source, asker: Asker) -> Reader:
    if source.kind == SourceKind.OPENCOST:
        return OpenCostReader(
            asker, dimensions_of(source), source.cluster, option(source, "resolution")
        )
    if source.kind == SourceKind.LITELLM_DATABASE:
        return LiteLLMTablesReader(asker, source.time_zone)
    if source.kind == SourceKind.LITELLM_API:
        return LiteLLMApiReader(asker, source.time_zone)
    names = ("node_label", "step_s", "team_label", "idle_below_percent", "idle_after_s")
    return PrometheusReader(asker, *(option(source, name) for name in names))


def as_it_is(_path: str, body: bytes) -> bytes:
    """Keep an answer whole: it holds nothing but numbers and names."""
    return body


def _needed(source: Source, what: str) -> str:
    found = secret(source, what)
    if not found:
        raise SourceError("SOURCE_NO_SECRET", variable=secret_name(source.name, what))
    return found


def dimensions_of(source: Source) -> Dimensions:
    """Return what the cost rows of an OpenCost are told apart by."""
    node = ("node",) if option(source, "by_node") else ()
    return Dimensions(
        ("cluster", *node, "namespace", "controllerKind", "controller"),
        tuple(map(sanitised, option(source, "label_keys"))),
        tuple(map(sanitised, option(source, "annotation_keys"))),
    )
