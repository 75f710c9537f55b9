"""``Idempotency-Key``: a POST that is sent again, because its answer was lost, counts once.

The key and the answer are rows of the transaction in which the request takes effect, so either
all three are there or none (``product.md`` 2.1). What was refused changed nothing and is not
kept: the same key may try again. A secret that is told once (:func:`told_once`) is not kept
either: the second answer has null in its place.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common import clock
from gpuplatform.common.models import AnsweredRequest
from gpuplatform.common.questions import planned_cursor

HEADER, REPLAYED = "Idempotency-Key", "Idempotency-Replayed"
LONGEST = 128
KEPT = timedelta(hours=24)
PATIENCE_MS = 5_000  # that a second request waits for the first one
_TOLD_ONCE = "told_once"  # of a response: fields that no table may keep
KEPT_HEADERS = ("Location", "ETag")
Act = Callable[..., Response]


class KeyInUse(APIException):
    """A request with this key is being answered right now."""

    status_code = HTTPStatus.CONFLICT
    default_detail = _("A request with this key is being answered; ask again in a moment.")
    default_code = "key_in_use"


class KeyReused(APIException):
    """The key stands for another request."""

    status_code = HTTPStatus.UNPROCESSABLE_ENTITY
    default_detail = _("This key stands for another request; each request needs its own.")
    default_code = "key_reused"


def given_key(request: Request) -> str:
    """Return the key of a POST, "" without one.

    Raises:
        ValidationError: it is too long, or no plain text.
    """
    key = request.headers.get(HEADER, "") if request.method == "POST" else ""
    if len(key) > LONGEST or not key.isascii() or not key.isprintable():
        words = _("A key has at most {most} printable ASCII characters.").format(most=LONGEST)
        raise ValidationError({HEADER: [words]})
    return key


def once(act: Act, key: str) -> Act:
    """Return ``act``, a handler of REST, so that what it does under ``key`` is done once."""

    def answered(request: Request, *args: Any, **kwargs: Any) -> Response:
        digest = _digest(request)

        def first() -> Response:
            return _first(lambda: act(request, *args, **kwargs), request, key, digest)

        try:
            return first()
        except _Known:
            if not _forget_old(request, key):
                return _again(request, key, digest)
        try:
            return first()
        except _Known:  # somebody was faster with the key that was free again
            return _again(request, key, digest)

    return answered


class _Known(Exception):
    """The key is there already."""


def _first(act: Callable[[], Response], request: Request, key: str, digest: str) -> Response:
    with transaction.atomic():
        row = _claim(request, key, digest)
        response = act()
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            transaction.set_rollback(True)
            return response
        _keep(row, response)
    return response


def _keep(row: AnsweredRequest, response: Response) -> None:
    """Keep the answer as it was said; its body is JSON already, which no column reads again."""
    body = JSONRenderer().render(_kept(response)).decode() or "null"
    headers = json.dumps({name: response[name] for name in KEPT_HEADERS if name in response})
    with planned_cursor() as cursor:
        cursor.execute(_KEEP, [response.status_code, body, headers, row.pk])


_KEEP = "UPDATE common_answeredrequest SET code = %s, body = %s, headers = %s WHERE id = %s"


def told_once(response: Response, *names: str) -> Response:
    """Mark fields of an answer that no table may keep."""
    setattr(response, _TOLD_ONCE, names)
    return response


def _kept(response: Response) -> Any:
    names = getattr(response, _TOLD_ONCE, ())
    return {**response.data, **dict.fromkeys(names)} if names else response.data


def _claim(request: Request, key: str, digest: str) -> AnsweredRequest:
    """Write the key down; where another does so at this moment, wait for it, but not long.

    Raises:
        _Known: it is there already.
        KeyInUse: another is still at it.
    """
    row = AnsweredRequest(user=_asker(request), key=key, digest=digest)
    try:
        if connection.vendor == "postgresql":
            _claim_at_once(row)
        else:  # one bound holds for whatever waits
            with transaction.atomic():
                row.save(force_insert=True)
    except IntegrityError:
        raise _Known from None
    except OperationalError as error:
        raise KeyInUse from error
    return row


# Patient for this one statement: the bound is set before a row is written, and lifted behind it.
# A key that is there already is no error, which would need a savepoint.
_CLAIM = """
    INSERT INTO common_answeredrequest (user_id, key, digest, at, headers)
    SELECT %s, %s, %s, %s, '{}' FROM set_config('lock_timeout', %s, true)
    ON CONFLICT (user_id, key) DO NOTHING
    RETURNING id, set_config('lock_timeout', '0', true)
"""


def _claim_at_once(row: AnsweredRequest) -> None:
    patience = f"{PATIENCE_MS}ms"
    with planned_cursor() as cursor:
        cursor.execute(_CLAIM, [row.user_id, row.key, row.digest, row.at, patience])
        found = cursor.fetchone()
    if found is None:
        raise _Known
    row.pk, row._state.adding = found[0], False  # noqa: SLF001  # as Django does


def _asker(request: Request) -> Any:
    """Return who asks: somebody, since a view's permissions were looked at before."""
    return request.user


def _again(request: Request, key: str, digest: str) -> Response:
    row = AnsweredRequest.objects.filter(user=_asker(request), key=key).first()
    if row is None or row.code is None:
        raise KeyInUse
    if row.digest != digest:
        raise KeyReused
    return Response(row.body, row.code, headers={**row.headers, REPLAYED: "true"})


def _digest(request: Request) -> str:
    """Return what tells a request from others with the same key."""
    plain = request._request  # noqa: SLF001  # the body as it came
    told = [plain.get_full_path(), plain.content_type or ""]
    head = "\n".join(told).encode()
    return hashlib.sha256(head + b"\n\n" + plain.body).hexdigest()


def _forget_old(request: Request, key: str) -> bool:
    """Forget an answer whose time is over. Returns whether there was one."""
    old = AnsweredRequest.objects.filter(user=_asker(request), key=key, at__lt=clock.now() - KEPT)
    return bool(old.delete()[0])


def forget_old_answers() -> None:
    """Forget the answers whose time is over; a periodic task calls this."""
    AnsweredRequest.objects.filter(at__lt=clock.now() - KEPT).delete()
