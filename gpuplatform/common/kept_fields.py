"""Serializers that make their fields once for a class, and read plain columns plainly.

DRF works the fields of a model's serializer out of the columns each time that one is made: of a
workload that takes longer than everything else that its answer needs. What a field says of a value
depends on nothing but the value; only those that look at other rows or at the reader are made
anew, as parts of the serializer whose context they need.
"""

from dataclasses import dataclass
from typing import Any

from rest_framework import serializers
from rest_framework.fields import Field, SkipField
from rest_framework.relations import ManyRelatedField, PKOnlyObject, RelatedField
from rest_framework.utils.serializer_helpers import BindingDict

AnyField = Field[Any, Any, Any, Any]
_WITHIN = ("child", "child_relation")  # where a field keeps another one


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of a class: of a column, of a method (``get_...``), or of neither."""

    name: str
    field: AnyField
    column: str = ""
    method: str = ""


_parts: dict[type, list[_Part]] = {}


class KeptFields(serializers.Serializer[Any]):
    """A serializer to read with, whose fields depend on its class alone; before DRF's classes."""

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return the row as DRF does."""
        kind = type(self)
        if kind not in _parts:
            _parts[kind] = [_part(field, kind) for field in _bound(self)]
        told: dict[str, Any] = {}
        for part in _parts[kind]:
            if part.column:
                value = getattr(instance, part.column)
                told[part.name] = None if value is None else part.field.to_representation(value)
            elif part.method:
                told[part.name] = getattr(self, part.method)(instance)
            else:
                _tell(told, _copied(part.field, self), instance)
        return told


def _bound(serializer: KeptFields) -> list[AnyField]:
    """Return the fields that are read, bound to a serializer."""
    fields = BindingDict(serializer)
    for name, field in serializer.get_fields().items():
        fields[name] = field
    return [field for field in fields.fields.values() if not field.write_only]


def _part(field: Any, kind: type) -> _Part:
    name = field.field_name
    if isinstance(field, serializers.SerializerMethodField):
        return _Part(name, field, method=field.method_name)
    of_others = isinstance(field, (serializers.BaseSerializer, RelatedField, ManyRelatedField))
    (attribute, *deeper) = field.source_attrs or [""]
    model = getattr(getattr(kind, "Meta", None), "model", None)
    is_called = callable(getattr(model, attribute, None))
    if of_others or deeper or is_called:
        return _Part(name, field)
    return _Part(name, field, column=attribute)


def _tell(told: dict[str, Any], field: Any, instance: Any) -> None:
    """Say what a field says; DRF's own words for one of them."""
    try:
        value = field.get_attribute(instance)
    except SkipField:
        return
    given = value.pk if isinstance(value, PKOnlyObject) else value
    told[field.field_name] = None if given is None else field.to_representation(value)


def _copied(field: Any, parent: Any) -> Any:
    """Return a field that is bound to another serializer, with a copy of what is within it."""
    copy = object.__new__(type(field))
    copy.__dict__.update(field.__dict__, parent=parent)
    copy.__dict__.pop("fields", None)  # of a serializer, which makes its own
    for name in _WITHIN:
        if name in copy.__dict__:
            setattr(copy, name, _copied(getattr(copy, name), copy))
    return copy
