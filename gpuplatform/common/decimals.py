"""Numbers in forms and bodies, as quotas and manifests read them: digits that everybody reads.

Python alone reads ``1_000`` and the digits of other scripts, too; a slip of the hand must not
become another amount.
"""

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from rest_framework import serializers

from gpuplatform.common.money import is_plain


class AmountField(forms.DecimalField):
    """A decimal in a form."""

    def to_python(self, value: Any) -> Any:
        """Return the number, None for nothing.

        Raises:
            ValidationError: it is not written with plain digits.
        """
        if isinstance(value, str) and value.strip() and not is_plain(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)


class AmountInput(serializers.DecimalField):
    """A decimal in a body."""

    def to_internal_value(self, data: Any) -> Decimal:
        """Return the number; one that is not written with plain digits fails as none at all."""
        if isinstance(data, str) and not is_plain(data):
            self.fail("invalid")
        return super().to_internal_value(data)


class WholeField(forms.IntegerField):
    """A whole number in a form."""

    def to_python(self, value: Any) -> Any:
        """Return the number, None for nothing.

        Raises:
            ValidationError: it is not written with plain digits.
        """
        if isinstance(value, str) and value.strip() and not is_plain(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)


class WholeInput(serializers.IntegerField):
    """A whole number in a body."""

    def to_internal_value(self, data: Any) -> int:
        """Return the number; one that is not written with plain digits fails as none at all."""
        if isinstance(data, str) and not is_plain(data):
            self.fail("invalid")
        return super().to_internal_value(data)
