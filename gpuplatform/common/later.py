"""``Prefer: respond-async`` (RFC 7240): ask now, look later what came out.

The request is kept as an :class:`Operation`, answered with 202 and its address, and asked again
by a worker (``doors.operations``) with the same rights, through the same view.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from celery import current_app
from django.db import transaction
from django.urls import reverse
from kombu.exceptions import OperationalError
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common import clock, reasons
from gpuplatform.common.middleware import current_request_id
from gpuplatform.common.models import OPEN, Operation, WorkState
from gpuplatform.common.problems import Problem, Rejected

HEADER, ASYNC = "Prefer", "respond-async"
MOST_OPEN = 20  # of one person
TASK = "doors.run_operations"
NOW = "_answered_now"  # of a request: a worker asks again, and wants the answer
KEPT_HEADERS = ("Accept", "Host")
_LONGEST_PATH = 2000


def wants_later(request: Request, view: Any) -> bool:
    """Return whether this request is to be answered later, where its view allows that.

    ``view.later``: methods of which that may be asked; ``view.always_later``: all of them are.
    """
    if getattr(request._request, NOW, False):  # noqa: SLF001  # marked by the worker
        return False
    asked = re.split(r"[,;]\s*", request.headers.get(HEADER, "").lower())
    is_wanted = ASYNC in asked or getattr(view, "always_later", False)
    methods: tuple[str, ...] = getattr(view, "later", ())
    return is_wanted and request.method in methods


def keep_for_later(request: Request, scope: str) -> Response:
    """Keep the request and answer where to look; a worker is woken.

    Raises:
        Rejected: too many operations of this person are open, or the address is too long.
    """
    plain = request._request  # noqa: SLF001  # the body as it came
    path = plain.get_full_path()
    mine = Operation.objects.filter(asked_by=request.user.pk, state__in=OPEN)
    if (count := mine.count()) >= MOST_OPEN:
        raise _refused("OPERATIONS_BUSY", count=count)
    if len(path) > _LONGEST_PATH:
        raise _refused("OUT_OF_RANGE", value=len(path), low=1, high=_LONGEST_PATH)
    row = Operation.objects.create(
        **_asker(request),
        kind=_kind(plain),
        method=str(request.method),
        path=path,
        body=plain.body,
        headers=_headers(plain),
        scope=scope,
        asked_at=clock.now(),
        changed_at=clock.now(),
    )
    transaction.on_commit(_wake, robust=True)
    told = {"Location": address_of(row.pk), "Preference-Applied": ASYNC}
    return Response(as_json(row), HTTPStatus.ACCEPTED, headers=told)


def _refused(code: str, **numbers: int) -> Rejected:
    return Rejected([Problem("", code, reasons.sentence(code, numbers), numbers)])


def _asker(request: Request) -> dict[str, Any]:
    """Return who asks and with what: a token, or a session of a browser."""
    token = request.auth
    return {
        "asked_by": request.user,
        "asked_name": request.user.get_username(),
        "token": str(token.pk) if token is not None else "",
        "team_limit": getattr(token, "team_id", None),
    }


def _kind(plain: Any) -> str:
    name = plain.resolver_match.url_name or ""
    return str(name).removeprefix("api-")


def _headers(plain: Any) -> dict[str, str]:
    found = {name: plain.headers[name] for name in KEPT_HEADERS if name in plain.headers}
    kind = {"Content-Type": plain.content_type or ""}
    return found | kind | {"X-Request-ID": current_request_id()}


def _wake() -> None:
    """Wake the worker; where the broker is away, beat finds the operation."""
    try:
        current_app.send_task(TASK, ignore_result=True, retry=False)
    except (OSError, OperationalError):
        return


# ---- how an operation is told ------------------------------------------------------------------
def address_of(uid: object) -> str:
    """Return where an operation is looked at."""
    return reverse("api-operation", args=[uid])


def as_json(row: Operation) -> dict[str, Any]:
    """Return an operation as REST tells it."""
    result = None
    if row.state == WorkState.DONE:
        url = reverse("api-operation-result", args=[row.pk])
        result = {"status": row.code, "url": url}
    return {
        "uid": str(row.pk),
        "kind": row.kind,
        "state": str(row.state),
        "stage": None,
        "progress": {"done": row.come, "of": row.whole},
        "request": {"method": row.method, "path": row.path},
        "asked_by": row.asked_name,
        "asked_at": row.asked_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "url": address_of(row.pk),
        "result": result,
        "problem": row.problem,
    }


_TIME = {"type": "string", "format": "date-time"}
_TIME_OR_NONE = _TIME | {"type": ["string", "null"]}
_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}


def _object(properties: Mapping[str, Any], *, null: bool = False) -> dict[str, Any]:
    kind: Any = ["object", "null"] if null else "object"
    return {"type": kind, "required": sorted(properties), "properties": dict(properties)}


SHAPE: dict[str, Any] = _object(
    {
        "uid": _TEXT | {"format": "uuid"},
        "kind": _TEXT | {"description": "The name of the address that was asked, or `replay`."},
        "state": _TEXT | {"enum": list(WorkState.values)},
        "stage": {"type": ["string", "null"]},
        "progress": _object({"done": _COUNT, "of": _COUNT}),
        "request": _object({"method": _TEXT, "path": _TEXT}, null=True),
        "asked_by": _TEXT,
        "asked_at": _TIME,
        "started_at": _TIME_OR_NONE,
        "finished_at": _TIME_OR_NONE,
        "url": _TEXT,
        "result": _object({"status": {"type": ["integer", "null"]}, "url": _TEXT}, null=True),
        "problem": {
            "anyOf": [{"$ref": "#/components/schemas/Problem"}, {"type": "null"}],
            "description": "Why it broke off.",
        },
    }
)
