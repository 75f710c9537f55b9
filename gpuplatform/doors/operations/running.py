"""Ask again what was to be answered later, through the same view and with the same rights.

What the request does and that it is done are one transaction: a worker that dies has done
nothing, and one that was taken for lost, or whose work was cancelled meanwhile, takes all back.
"""

import logging
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.http import HttpRequest
from django.test import RequestFactory
from django.urls import resolve
from django.utils import timezone

from gpuplatform.common import clock, reasons
from gpuplatform.common.failures import note_failure
from gpuplatform.common.http import problem
from gpuplatform.common.later import NOW, TASK
from gpuplatform.common.longwork import MOST_ATTEMPTS, over, take_oldest
from gpuplatform.common.middleware import under_request_id
from gpuplatform.common.models import OPEN, Operation, WorkState
from gpuplatform.common.progress import heeding
from queues.access import SECOND_FACTOR
from queues.models import ApiToken

SILENT = timedelta(minutes=16)  # longer than the task may take
KEPT = timedelta(days=7)
MOST_BYTES = 64 * 2**20  # of an answer
SHOWN = 200  # characters of an unexpected error
TOLD = timedelta(seconds=1)
KEPT_HEADERS = ("Content-Type", "Content-Disposition", "Location", "ETag")
logger = logging.getLogger(__name__)
Heed = Callable[[int, int], None]


class _DroppedError(BaseException):  # no view may take it for an error of its own
    """It was cancelled, or somebody else has taken it."""


def run_next() -> UUID | None:
    """Do the oldest operation that waits; None where none does, or one is being done."""
    now = clock.now()
    lost = over(WorkState.FAILED, _problem("OPERATION_LOST", count=MOST_ATTEMPTS))
    rows = Operation.objects.defer("answer")
    row = take_oldest(rows, now, silent=SILENT, lost=lost)
    if row is None:
        return None
    _run(row)
    return row.pk


def forget_old() -> None:
    """Forget operations that ended a week ago, with what came out."""
    Operation.objects.filter(finished_at__lt=clock.now() - KEPT).delete()


def cancel(uid: UUID) -> bool:
    """Let an operation be over; what it has done is taken back. False: it was over."""
    mine = Operation.objects.filter(pk=uid, state__in=OPEN)
    return bool(mine.update(**over(WorkState.CANCELLED)))


def _problem(code: str, **numbers: Any) -> dict[str, Any]:
    sentence = reasons.sentence(code, numbers)
    found = {"pointer": "", "code": code, "detail": sentence, "numbers": numbers}
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, code.lower(), sentence, errors=[found])


def _run(row: Operation) -> None:
    mine = Operation.objects.filter(pk=row.pk, state=WorkState.RUNNING, attempts=row.attempts)
    try:
        with under_request_id(row.headers.get("X-Request-ID", "")):
            refused = _answered(row, mine)
    except _DroppedError:
        logger.info("operation.dropped", extra={"operation": str(row.pk)})
    except Exception as error:  # a fault of ours must not leave it running for ever
        logger.exception("operation.failed", extra={"operation": str(row.pk)})
        note_failure(TASK, error)
        said = f"{type(error).__name__}: {error}"[:SHOWN]
        mine.update(**over(WorkState.FAILED, _problem("OPERATION_FAILED", problem=said)))
    else:
        if refused is not None:
            mine.update(**over(WorkState.FAILED, refused))
        logger.info("operation.done", extra={"operation": str(row.pk)})


def _answered(row: Operation, mine: Any) -> dict[str, Any] | None:
    """Ask, and keep the answer with what it did. Returns why it was refused, if it was."""
    token = ApiToken.objects.filter(pk=row.token).first() if row.token else None
    if row.token and (token is None or (token.expiry and token.expiry <= timezone.now())):
        return _problem("OPERATION_TOKEN_GONE") | {"status": int(HTTPStatus.UNAUTHORIZED)}
    with transaction.atomic(), heeding(_teller(row)):
        response = ask(row, token)
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            transaction.set_rollback(True)
            return dict(response.data)
        answer = b"".join(response) if response.streaming else response.content
        if len(answer) > MOST_BYTES:
            transaction.set_rollback(True)
            return _problem("OPERATION_TOO_LARGE", bytes=len(answer), most=MOST_BYTES)
        kept = {"code": response.status_code, "answer": answer}
        kept["answer_headers"] = {n: response[n] for n in KEPT_HEADERS if n in response}
        if not mine.update(**over(WorkState.DONE), **kept):
            raise _DroppedError  # takes back all that was done
    return None


def ask(row: Operation, token: ApiToken | None) -> Any:
    """Return what the view of the address answers to who asked."""
    names = {"Accept": "HTTP_ACCEPT", "Host": "HTTP_HOST"}
    told: dict[str, Any] = {names[n]: v for n, v in row.headers.items() if n in names}
    kind = row.headers.get("Content-Type") or "application/octet-stream"
    body = bytes(row.body)
    factory = RequestFactory()
    request: Any = factory.generic(row.method, row.path, body, content_type=kind, **told)
    _sign_in(request, row, token)
    match = resolve(request.path_info)
    request.resolver_match = match
    response = match.func(request, *match.args, **match.kwargs)
    return response.render() if hasattr(response, "render") else response


def _sign_in(request: HttpRequest, row: Operation, token: ApiToken | None) -> None:
    """Let the request be of who asked. Rights are looked at anew by the view.

    A browser that asked had proved the second factor where one is demanded.
    """
    found: Any = request
    found.user = row.asked_by
    found._force_auth_user, found._force_auth_token = row.asked_by, token  # noqa: SLF001  # DRF's own way in
    found.session = {SECOND_FACTOR: row.asked_by.pk} if row.asked_by and not token else {}
    setattr(found, NOW, True)


def _teller(row: Operation) -> Heed:
    """Return what writes how far it is, about once a second, and notices that it is over.

    The work is one transaction, so this is told beside it, on a connection of its own. SQLite has
    one writer at a time, which is the work itself: there only the end is seen.
    """
    last = [clock.now() - TOLD]

    def heed(come: int, whole: int) -> None:
        now = clock.now()
        if connection.vendor != "postgresql" or now - last[0] < TOLD:
            return
        last[0] = now
        if not _told_beside(row, come, whole):
            raise _DroppedError

    return heed


def _told_beside(row: Operation, come: int, whole: int) -> bool:
    """Write progress at once. Returns whether the work is wanted still."""
    table = connection.ops.quote_name(Operation._meta.db_table)  # noqa: SLF001  # Django's own name for it
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(
                f"UPDATE {table} SET come = %s, whole = %s, changed_at = %s"  # noqa: S608  # our name
                " WHERE uid = %s AND state = 'running' AND attempts = %s",
                [come, whole, clock.now(), row.pk, row.attempts],
            )
            if cursor.rowcount:
                return True
            cursor.execute(f"SELECT 1 FROM {table} WHERE uid = %s", [row.pk])  # noqa: S608  # likewise
            return cursor.fetchone() is None  # nobody else sees it yet
    finally:
        other.close()
