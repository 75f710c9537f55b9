"""Bodies of REST whose every field is read: a misspelt one must not be lost in silence."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers


class KnownFields(serializers.Serializer[Any]):
    """Refuses fields that nothing reads, and says so beside all else that is wrong."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the fields that are known.

        Raises:
            ValidationError: for each field that is wrong, missing or unknown.
        """
        given = set(data) if isinstance(data, Mapping) else set()
        unknown = {name: ["unknown field"] for name in sorted(given - set(self.fields))}
        try:
            found = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if isinstance(error.detail, dict):
                raise serializers.ValidationError({**error.detail, **unknown}) from error
            raise
        if unknown:
            raise serializers.ValidationError(unknown)
        return found
