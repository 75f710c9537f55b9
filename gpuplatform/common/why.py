"""``?reason=``: why somebody changes something over REST; it stands in the audit trail."""

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

LONGEST = 500
PARAMETER = OpenApiParameter("reason", str, description="Why; it stands in the audit trail.")


def given_reason(request: Request) -> str:
    """Return the reason given, "" without one.

    Raises:
        ValidationError: it is too long.
    """
    reason = request.query_params.get("reason", "").strip()
    if len(reason) > LONGEST:
        words = _("A reason has at most {most} characters.").format(most=LONGEST)
        raise ValidationError({"reason": [words]})
    return reason
