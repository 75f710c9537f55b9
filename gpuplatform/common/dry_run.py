"""``?dry_run=All``: decide everything, keep nothing, as in Kubernetes."""

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

ALL = "All"  # the only value
PARAMETER = OpenApiParameter("dry_run", str, enum=[ALL], description="Decide, keep nothing.")


def is_dry_run(request: Request) -> bool:
    """Return whether a dry run was asked for.

    Raises:
        ValidationError: any other value than ``All``.
    """
    value = request.query_params.get("dry_run")
    if value not in (None, ALL):
        raise ValidationError({"dry_run": [_("The only value is {value}.").format(value=ALL)]})
    return value == ALL
