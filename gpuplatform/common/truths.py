"""Truth over REST: a JSON boolean, and nothing that only looks like one."""

from typing import Any

from rest_framework import serializers


class TruthField(serializers.BooleanField):
    """``true`` or ``false``; ``"yes"``, ``"1"`` and 1 are a mistake of whoever wrote them."""

    def to_internal_value(self, data: Any) -> bool:
        """Return ``data``.

        Raises:
            ValidationError: it is no boolean.
        """
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data
