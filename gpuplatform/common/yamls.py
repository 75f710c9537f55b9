"""Documents as YAML that :mod:`gpuplatform.common.manifests` reads as exactly the same values.

Over REST: ``?format=yaml`` or ``Accept: application/yaml``.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import yaml
from django.http import HttpResponse, StreamingHttpResponse
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from gpuplatform.common.lists import is_async
from gpuplatform.common.manifests import is_plain_text
from gpuplatform.common.pages import one_by_one

YAML = "yaml"
CONTENT_TYPE = "application/yaml"
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
WIDTH = 10_000  # no text is folded: a diff of two exports shows whole values


class _Dumper(_DUMPER):  # type: ignore[misc]  # the C one where it is there
    """Writes neither anchors, which nobody takes in, nor a text that would be read as a number."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return that equal parts are written out each time."""
        del data
        return True


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if is_plain_text(text) else '"'
    )


_Dumper.add_representer(str, _text)


def dumped(documents: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each document as YAML, with the mark before it that parts it from the last."""
    for document in documents:
        yield "---\n" + yaml.dump(
            document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH
        )


class YAMLRenderer(BaseRenderer):
    """Lets a client ask for YAML; the view writes it, so only refusals come here: as JSON."""

    media_type, format = CONTENT_TYPE, YAML

    def render(self, data: Any, *_args: Any, **_kwargs: Any) -> bytes:
        """Return a refusal as JSON."""
        return bytes(JSONRenderer().render(data))


def wants_yaml(request: Request) -> bool:
    """Return whether the answer is asked for as documents."""
    return getattr(getattr(request, "accepted_renderer", None), "format", "") == YAML


def yaml_answer(request: Request, documents: Iterable[Mapping[str, Any]]) -> HttpResponse:
    """Return documents as YAML, sent while they are made."""
    parts = dumped(documents)
    sent = one_by_one(parts) if is_async(request) else parts
    response = StreamingHttpResponse(sent, content_type=CONTENT_TYPE)
    return cast("HttpResponse", response)  # as any middleware takes it
