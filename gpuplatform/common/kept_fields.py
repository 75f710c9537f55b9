"""Serializers that make their fields once for a class, and not for each answer.

DRF works the fields of a model's serializer out of the columns each time that one is made: of a
workload that takes longer than everything else that its answer needs.
"""

from typing import Any

from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.fields import Field
from rest_framework.utils.serializer_helpers import BindingDict

_made: dict[type, dict[str, Field[Any, Any, Any, Any]]] = {}
_WITHIN = ("child", "child_relation")  # where a field keeps another one


class KeptFields(serializers.Serializer[Any]):
    """A serializer whose fields depend on its class alone; stands before DRF's own classes.

    Each instance has copies of the fields that belong to itself, so that they find its context.
    """

    @cached_property
    def fields(self) -> BindingDict:
        """Return the fields by name."""
        kind, own = type(self), BindingDict(self)
        if kind not in _made:
            bound = BindingDict(self)
            for name, field in self.get_fields().items():
                bound[name] = field
            _made[kind] = dict(bound.fields)
        for name, field in _made[kind].items():
            own.fields[name] = _copied(field, self)
        return own


def _copied(field: Any, parent: Any) -> Any:
    """Return a field that is bound to another serializer, with a copy of what is within it."""
    copy = object.__new__(type(field))
    copy.__dict__.update(field.__dict__, parent=parent)
    copy.__dict__.pop("fields", None)  # of a serializer, which makes its own
    for name in _WITHIN:
        if name in copy.__dict__:
            setattr(copy, name, _copied(getattr(copy, name), copy))
    return copy
