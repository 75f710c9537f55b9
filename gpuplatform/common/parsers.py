"""Bodies of requests: bounded, read whole, refused with the line where they are broken."""

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from gpuplatform.common.http import TooLarge
from gpuplatform.common.manifests import MAX_BYTES, parse_json


def bounded(stream: Any) -> bytes:
    """Return the body, of at most 1 MiB.

    Raises:
        TooLarge: there is more.
    """
    body: bytes = stream.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise TooLarge
    return body


class StrictJSONParser(BaseParser):
    """JSON without duplicate keys, endless numbers, NaN, NUL characters or deep nesting."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the JSON value of the body."""
        del media_type, parser_context
        body = bounded(stream)
        try:
            return parse_json(body.decode("utf-8"))
        except ValueError as error:
            raise ParseError(f"JSON: {error}"[:200]) from error


class ManifestParser(BaseParser):
    """Manifests as they come: the importer reads them."""

    media_type = "application/yaml"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the body as it is."""
        del media_type, parser_context
        return bounded(stream)


class TextManifestParser(ManifestParser):
    """Manifests under the other name that people give YAML."""

    media_type = "text/yaml"


class OldManifestParser(ManifestParser):
    """Manifests under the name from before the media type was registered."""

    media_type = "application/x-yaml"


class JsonManifestParser(ManifestParser):
    """Manifests written as JSON."""

    media_type = "application/json"
