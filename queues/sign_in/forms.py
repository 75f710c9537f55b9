"""Forms of allauth with our patience, and codes that are good once."""

from allauth.account.forms import ReauthenticateForm as AllauthPasswordForm
from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.base.forms import ReauthenticateForm as AllauthCodeForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from allauth.mfa.utils import decrypt
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext

from queues.patience import count_attempt, forget

LAST = "last_counter"  # in an authenticator's data: the period of the newest code that was taken


class _Codes:
    """A code is looked at while nobody else looks at one of the same person."""

    def clean_code(self) -> str:
        """Return the code; it is used up then."""
        key = count_attempt("code", str(self.user.pk))  # type: ignore[attr-defined]
        with transaction.atomic():
            mine = Authenticator.objects.filter(user=self.user)  # type: ignore[attr-defined]
            list(mine.select_for_update().order_by("pk"))
            code: str = super().clean_code()  # type: ignore[misc]
            found: Authenticator = self.authenticator  # type: ignore[attr-defined]
            if found.type == Authenticator.Type.TOTP:
                _use_up(found, code)
        forget(key)
        return code


def _use_up(authenticator: Authenticator, code: str) -> None:
    """Refuse codes of a period up to that of the last one (RFC 6238, 5.2), else note it."""
    secret = decrypt(authenticator.data["secret"])
    for counter in yield_hotp_counters_from_time():
        if counter <= authenticator.data.get(LAST, -1):
            continue
        expected = format_hotp_value(hotp_value(secret, counter))
        if compare_user_code(actual=code, expected=expected):
            authenticator.data[LAST] = counter
            authenticator.save(update_fields=["data"])
            return
    raise ValidationError(gettext("This code was used already: wait for the next one."))


class CodeForm(_Codes, AuthenticateForm):  # type: ignore[misc]  # allauth is untyped
    """The second step of a sign-in."""


class CodeAgainForm(_Codes, AllauthCodeForm):  # type: ignore[misc]  # allauth is untyped
    """A code before something that concerns the second factor itself."""


class PasswordAgainForm(AllauthPasswordForm):  # type: ignore[misc]  # allauth is untyped
    """The password before a second factor is set up."""

    def clean_password(self) -> str:
        """Return the password, if it is right."""
        key = count_attempt("password-again", str(self.user.pk))
        password: str = super().clean_password()
        forget(key)
        return password
