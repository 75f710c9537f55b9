"""What the readers of promises share: the frame of a document, weights, choices, JSON parts."""

from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from gpuplatform.common.fields import INT32_MAX, Fields
from gpuplatform.common.manifests import Document, Reading, parse_json
from gpuplatform.common.problems import Rejected
from gpuplatform.common.quantities import parse_quantity

TEAM_LABEL = "gpuplatform.io/team"
VERSION_NOTE = "gpuplatform.io/version"  # which version of the object an export shows
# Written by the cluster or by tools; they promise nothing.
BOOKKEEPING = (
    "name",
    "namespace",
    "generateName",
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)


def open_document(document: Document, reading: Reading) -> Fields:
    """Return the document's fields, its frame read: versions, kind, metadata, status."""
    fields = document.fields(reading.diagnostics)
    fields.accept("apiVersion", "kind", "status")
    metadata = fields.child("metadata", required=True)
    metadata.accept(*BOOKKEEPING)
    metadata.text("name", required=True)
    metadata.labels("labels")
    metadata.close()
    return fields


def owner(fields: Fields) -> str | None:
    """Return the team that an annotation or a label names; "" is nobody.

    None: the manifest does not say, and leaves the owner as it is.
    """
    labels = fields.child("metadata").labels("labels")
    return note(fields).text(TEAM_LABEL) if TEAM_LABEL in note(fields) else labels.get(TEAM_LABEL)


def note(fields: Fields) -> Fields:
    """Return the annotations, of which the reader takes those that it knows."""
    return fields.child("metadata").child("annotations")


def flag_note(fields: Fields, key: str, *, default: bool = False) -> bool:
    """Return whether an annotation says ``true``; ``default`` where it is absent."""
    usual = "true" if default else "false"
    return note(fields).choice(key, ("true", "false"), usual) == "true"


def carried_note(fields: Fields, key: str, known: Collection[str]) -> dict[str, Any]:
    """Return the ``known`` fields of an annotation in JSON that are kept but not acted on."""
    text = note(fields).text(key)
    if not text:
        return {}
    try:
        found = parse_json(text)
    except (ValueError, Rejected):
        found = None
    if not isinstance(found, dict) or not set(found) <= set(known):
        allowed = ", ".join(known)
        note(fields).report("BAD_VALUE", key, value=text[:64], allowed=allowed)
        return {}
    for name in found:
        note(fields).report("FIELD_NOT_HONOURED", key, field=name)
    return found


def seconds_note(fields: Fields, key: str) -> int:
    """Return a length of time that an annotation gives in whole seconds; 0 if absent."""
    text = note(fields).text(key, "0")
    if text.isascii() and text.isdecimal() and len(text) <= len(str(INT32_MAX)):
        return int(text)
    note(fields).report("BAD_QUANTITY", key, value=text[:64])
    return 0


def fair_weight(spec: Fields) -> Decimal:
    """Return ``fairSharing.weight``, a quantity: ``2``, ``"0.5"``, ``500m``; 1 if absent."""
    sharing = spec.child("fairSharing")
    value = sharing.raw("weight")
    sharing.close()
    if value is None:
        return Decimal(1)
    try:
        weight = _weight(value)
    except (ValueError, InvalidOperation):
        negative = str(value).strip().startswith("-")
        sharing.report("NEGATIVE" if negative else "BAD_QUANTITY", "weight", value=str(value)[:64])
        return Decimal(1)
    if weight != 1:
        sharing.report("FAIR_WEIGHT_KEPT", "weight", weight=str(value)[:64])
    return weight


def _weight(value: Any) -> Decimal:
    """Return an exact decimal; only a suffix is read as a quantity, in thousandths."""
    if not str(value).isascii() or "_" in str(value):  # Python would read both as numbers
        raise ValueError(value)
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return Decimal(parse_quantity("cpu", value)) / 1000
    if isinstance(value, bool) or not number.is_finite() or number < 0:
        raise ValueError(value)
    return number


def renamed(spec: Fields, current: str, other: str) -> str | None:
    """Return a field that API versions call differently; the other name is read and reported."""
    value = spec.text(current) or None
    alias = spec.text(other) or None
    if alias is None:
        return value
    if value is not None and value != alias:
        spec.report("BAD_VALUE", other, value=alias[:64], allowed=value[:64])
    spec.report("FIELD_RENAMED", other, old=spec.at(other), new=spec.at(current))
    return value or alias


def mapping_or_none(spec: Fields, key: str) -> Mapping[str, Any] | None:
    """Return a mapping as it stands; absent (None) and empty are different things."""
    return spec.child(key).body if key in spec else spec.raw(key)


def carry(spec: Fields, key: str, default: Any = None) -> dict[str, Any]:
    """Return ``{key: value}`` of a field that is kept but not acted on, with a warning.

    Nothing is said about an absent value or about ``default``, which is how we act anyway.
    """
    value = spec.raw(key)
    if value in (None, default, {}, []):
        return {}
    spec.report("FIELD_NOT_HONOURED", key, field=key)
    return {key: value}
