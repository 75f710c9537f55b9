"""Numbers in forms and bodies, as quotas and manifests read them: digits that everybody reads.

Python alone reads ``1_000`` and the digits of other scripts, too; a slip of the hand must not
become another amount.
"""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from rest_framework import serializers

from gpuplatform.common.money import is_plain


class _PlainField(forms.Field):
    """What stands before a number's own field in a form."""

    def to_python(self, value: Any) -> Any:
        """Return the number, None for nothing.

        Raises:
            ValidationError: it is not written with plain digits.
        """
        if isinstance(value, str) and value.strip() and not is_plain(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)


class _PlainInput(serializers.Field[Any, Any, Any, Any]):
    """What stands before a number's own field in a body."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the number; one that is not written with plain digits fails as none at all."""
        if isinstance(data, str) and not is_plain(data):
            self.fail("invalid")
        return super().to_internal_value(data)


class AmountField(_PlainField, forms.DecimalField):
    """A decimal in a form."""


class AmountInput(_PlainInput, serializers.DecimalField):
    """A decimal in a body."""


class WholeField(_PlainField, forms.IntegerField):
    """A whole number in a form."""


class WholeInput(_PlainInput, serializers.IntegerField):
    """A whole number in a body."""
