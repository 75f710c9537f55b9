"""Versions of objects over REST: what an answer says of them, and what a writer has seen."""

import hashlib
import json
import re
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.utils.encoders import JSONEncoder

from gpuplatform.common.problems import Problem, Stale
from queues.access import Actor

DIGITS = 12  # of the digest
# People leave the quotation marks out; nothing else can be meant.
_ETAG = re.compile(r'(?P<mark>"?)v(?P<version>\d{1,9})(-[0-9a-f]{12})?(?P=mark)', re.ASCII)


def etag(version: int, measured: Any = None) -> str:
    """Return the ETag of an object: ``"v3"``.

    Args:
        version: what a writer must have seen.
        measured: what is answered, where that changes without a new version, as what is spent of
            a budget does: ``"v3-0123456789ab"``. A writer may send this one as well.
    """
    if measured is None:
        return f'"v{version}"'
    text = json.dumps(measured, cls=JSONEncoder, sort_keys=True)
    return f'"v{version}-{hashlib.sha256(text.encode()).hexdigest()[:DIGITS]}"'


class PreconditionRequired(APIException):
    """The client must say which version it saw."""

    status_code = status.HTTP_428_PRECONDITION_REQUIRED
    default_detail = _('Send If-Match with the version that you saw, such as "v3".')
    default_code = "precondition_required"


def seen_version(request: Request, actor: Actor, found: object | None) -> int | None:
    """Return what If-Match says; ``*`` (whatever it is) is for admins; none creates."""
    given = request.headers.get("If-Match", "").strip()
    if given == "*" and actor.is_admin and found is not None:
        return None
    if match := _ETAG.fullmatch(given):
        return int(match["version"])
    if given:
        raise Stale([Problem("version", "stale", str(PreconditionRequired.default_detail))])
    if found is not None:
        raise PreconditionRequired
    return 0
