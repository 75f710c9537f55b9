"""Patience with wrong guesses: who guesses passwords or codes waits longer and longer.

Attempts are counted before the guess is looked at, so that many at once count as many; a right one
forgets them. The count lives in Django's cache.
"""

from datetime import datetime, timedelta
from hashlib import sha256

from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.forms import Form
from django.http import HttpResponse
from django.utils.translation import ngettext

from gpuplatform.common import clock

FREE = 5  # attempts that cost nothing
FIRST_WAIT_S, LONGEST_WAIT_S = 10, 300
REMEMBERED_S = 3600
THROTTLED = "throttled"
TOO_MANY = 429


def count_attempt(kind: str, who: str) -> str:
    """Count a guess of a ``kind`` by somebody; return what :func:`forget` takes.

    Raises:
        ValidationError: it comes too soon after too many others.
    """
    key = f"{kind}.{sha256(who.encode()).hexdigest()}"
    if wait := _count(key):
        raise _too_soon(wait)
    return key


def forget(key: str) -> None:
    """Forget the guesses: this one was right."""
    cache.delete(key)


def answer(response: HttpResponse, form: Form, refused: int) -> HttpResponse:
    """Give the page of a refused form its status: ``refused``, or 429 with ``Retry-After``."""
    response.status_code = refused
    for errors in form.errors.as_data().values():
        for error in errors:
            if error.code == THROTTLED:
                response.status_code = TOO_MANY
                response["Retry-After"] = str((error.params or {})["seconds"])
    return response


def _count(key: str) -> int:
    """Count an attempt; return the seconds to wait where it comes too soon."""
    now = clock.now()
    attempts, until = cache.get(key, (0, now))
    if now < until:
        return _seconds(until, now)
    attempts += 1
    if attempts >= FREE:
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(attempts - FREE, 10))
        until = now + timedelta(seconds=wait)
    cache.set(key, (attempts, until), REMEMBERED_S)
    return 0


def _seconds(until: datetime, now: datetime) -> int:
    return max(1, round((until - now).total_seconds()))


def _too_soon(seconds: int) -> ValidationError:
    words = ngettext(
        "Too many attempts: wait %(seconds)d second, then try again.",
        "Too many attempts: wait %(seconds)d seconds, then try again.",
        seconds,
    )
    return ValidationError(words, code=THROTTLED, params={"seconds": seconds})
