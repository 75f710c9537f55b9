"""What a source may be. Called by the service, so that no door can skip it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babel.numbers import list_currencies
from django.utils.translation import gettext as _

from finops.models import Source
from finops.models.sources import PLANES, Plane, SourceKind
from finops.sources.failures import SourceError
from finops.sources.http import Address
from finops.specs import OPTIONS, SourceSpec
from gpuplatform.common import reasons
from gpuplatform.common.problems import Problem
from queues.rules.words import check_reserved, check_short_name

CLUSTER_LENGTH, URL_LENGTH = 253, 500
KEYS, KEY_LENGTH, TEXT_LENGTH = 16, 316, 64
RANGES = {"step_s": (15, 3600), "idle_below_percent": (0, 100), "idle_after_s": (60, 86_400)}
NO_ADDRESS = frozenset({SourceKind.LITELLM_DATABASE})  # its address is a part of its secret


@dataclass(frozen=True, slots=True)
class SourceWorld:
    """What a source must agree with."""

    allowed_hosts: frozenset[str]
    others: Sequence[Source]  # enabled ones, without the one that is saved
    standing: Source | None  # the one of that name, if it is there


def check_source(spec: SourceSpec, world: SourceWorld) -> list[Problem]:
    """Return every reason not to take ``spec``."""
    problems = [
        *check_short_name(spec.name),
        *check_reserved(spec.name),
        *_check_kind(spec, world),
        *_check_texts(spec),
    ]
    if spec.kind in SourceKind.values:
        problems += [
            *_check_address(spec, world),
            *_check_options(spec),
            *_check_counted_once(spec, world),
        ]
    return problems


def _check_kind(spec: SourceSpec, world: SourceWorld) -> Iterator[Problem]:
    if spec.kind not in SourceKind.values:
        message = _("{kind} is no kind of source; choose one of {known}.")
        words = message.format(kind=spec.kind[:40], known=", ".join(SourceKind.values))
        yield Problem("kind", "BAD_VALUE", words)
    elif world.standing is not None and world.standing.kind != spec.kind:
        message = _("{name} is another kind of source; its rows would mean something else.")
        yield Problem("kind", "immutable", message.format(name=spec.name))


def _check_texts(spec: SourceSpec) -> Iterator[Problem]:
    for path, text, limit in (
        ("cluster", spec.cluster, CLUSTER_LENGTH),
        ("url", spec.url, URL_LENGTH),
    ):
        if len(text) > limit:
            message = _("At most {limit} characters.").format(limit=limit)
            yield Problem(path, "TOO_LONG", message, {"limit": limit})
        if "\0" in text:
            yield Problem(path, "bad_characters", _("The text cannot be kept."))
    if spec.currency not in list_currencies():
        message = _("{currency} is not an ISO 4217 currency.")
        yield Problem("currency", "BAD_VALUE", message.format(currency=spec.currency[:20]))


def _check_address(spec: SourceSpec, world: SourceWorld) -> Iterator[Problem]:
    """Only hosts that the operator named are ever called, whoever edits a source."""
    if spec.kind in NO_ADDRESS:
        if spec.url:
            message = _("This kind has no address here; it is a part of its secret.")
            yield Problem("url", "BAD_VALUE", message)
        return
    try:
        Address(spec.url, world.allowed_hosts).check()
    except (SourceError, ValueError) as error:
        code = error.code if isinstance(error, SourceError) else "SOURCE_BAD_ADDRESS"
        numbers = error.numbers if isinstance(error, SourceError) else {"url": spec.url[:40]}
        yield Problem("url", code, reasons.sentence(code, numbers), numbers)


def _check_options(spec: SourceSpec) -> Iterator[Problem]:
    known = OPTIONS[spec.kind]
    for name, value in spec.options.items():
        path = f"options.{name[:40]}"
        if name not in known:
            words = _("There is no such option; known are {known}.")
            names = ", ".join(known) or _("none")
            yield Problem(path, "unknown_choice", words.format(known=names))
        else:
            yield from _check_option(path, name, value, known)


def _check_option(path: str, name: str, value: Any, known: Mapping[str, Any]) -> Iterator[Problem]:
    default = known[name]
    if isinstance(default, bool):
        fits = isinstance(value, bool)
    elif isinstance(default, int):
        low, high = RANGES[name]
        fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    elif isinstance(default, tuple):
        fits = isinstance(value, list | tuple) and len(value) <= KEYS and all(map(_is_key, value))
    else:
        fits = isinstance(value, str) and len(value) <= TEXT_LENGTH and value.isprintable()
    if not fits:
        yield Problem(path, "BAD_VALUE", _("This option cannot have such a value."))


def _is_key(value: Any) -> bool:
    """Return whether a value may be a label's key: not empty, without what parts a list."""
    is_text = isinstance(value, str) and 0 < len(value) <= KEY_LENGTH and value.isprintable()
    return is_text and not set(value) & set(",: ")


def _check_counted_once(spec: SourceSpec, world: SourceWorld) -> Iterator[Problem]:
    """Two sources of one cluster and plane would count everything twice."""
    plane = PLANES[SourceKind(spec.kind)]
    for other in world.others if spec.enabled else ():
        if other.plane == plane and other.cluster == spec.cluster:
            message = _("{name} tells about the same already ({what} of {cluster}).").format(
                name=other.name,
                what=Plane(plane).label,
                cluster=spec.cluster or _("the only cluster"),
            )
            yield Problem("cluster", "COUNTED_TWICE", message)
