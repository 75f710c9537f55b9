"""Signing in, with patience: who guesses passwords waits longer and longer.

Attempts are counted by user name and address, before the password is looked at, so that many at
once count as many; a right one forgets them. The count lives in Django's cache.
"""

from datetime import datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import ngettext

from gpuplatform.common import clock

FREE = 5  # attempts that cost nothing
FIRST_WAIT_S, LONGEST_WAIT_S = 10, 300
REMEMBERED_S = 3600
THROTTLED = "throttled"


class PatientForm(AuthenticationForm):
    """User name and password; too many wrong ones have to wait."""

    def clean(self) -> dict[str, Any]:
        """Check the password, unless it is too soon for another attempt."""
        username = self.cleaned_data.get("username")
        if not username or not self.cleaned_data.get("password"):
            return dict(super().clean())  # no attempt
        key = _key(self.request, username)
        if wait := _count(key):
            raise _too_soon(wait)
        found = super().clean()
        cache.delete(key)
        return dict(found)


class PatientLogin(LoginView):
    """The page to sign in; 429 with ``Retry-After`` where somebody has to wait."""

    authentication_form = PatientForm
    redirect_authenticated_user = True

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show the page again."""
        response = super().form_invalid(form)
        for error in form.non_field_errors().as_data():
            if error.code == THROTTLED:
                response.status_code = HTTPStatus.TOO_MANY_REQUESTS
                response["Retry-After"] = str((error.params or {})["seconds"])
        return response


def _key(request: HttpRequest | None, username: str) -> str:
    address = request.META.get("REMOTE_ADDR", "") if request is not None else ""
    who = f"{address} {username.casefold()}"
    return f"sign-in.{sha256(who.encode()).hexdigest()}"


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
