"""Pages of the second factor: allauth's, at addresses of ours, in our look."""

from typing import Any

from allauth.account.views import ReauthenticateView
from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.base.views import ReauthenticateView as AllauthCodeAgain
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView, ViewRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from queues.access import SECOND_FACTOR, actor_of
from queues.models import User
from queues.patience import answer
from queues.sign_in import record_own
from queues.sign_in.forms import CodeAgainForm, CodeForm, PasswordAgainForm

REFUSED = 422
TOTP, CODES = Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES


@require_safe
@never_cache
@login_required
def factor_page(request: HttpRequest) -> HttpResponse:
    """Show one's second factor; who must have one and lacks it is led here first. 1 query."""
    user = request.user
    assert isinstance(user, User)
    found = {one.type: one for one in Authenticator.objects.filter(user=user)}
    codes = found.get(CODES)
    asked_for = request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(asked_for, {request.get_host()})
    context = {
        "app": found.get(TOTP),
        "codes_left": len(codes.wrap().get_unused_codes()) if codes else 0,
        "lacking": actor_of(request).lacks_factor,
        "next": asked_for if is_ours else "",
    }
    return render(request, "queues/second_factor.html", context)


class _Refusing:
    """A refused form answers 422; who guesses too much, 429."""

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the page again."""
        return answer(super().form_invalid(form), form, REFUSED)  # type: ignore[misc]


class CodePage(_Refusing, AuthenticateView):  # type: ignore[misc]  # allauth is untyped
    """The second step of a sign-in."""

    form_class = CodeForm


class CodeAgain(_Refusing, AllauthCodeAgain):  # type: ignore[misc]
    """Ask for a code once more."""

    form_class = CodeAgainForm


class PasswordAgain(_Refusing, ReauthenticateView):  # type: ignore[misc]
    """Ask for the password once more."""

    form_class = PasswordAgainForm


class SetUp(_Refusing, ActivateTOTPView):  # type: ignore[misc]
    """Set up an authenticator app; the session that does has proved it."""

    @transaction.atomic
    def form_valid(self, form: Any) -> HttpResponse:
        """Keep it, with recovery codes."""
        response: HttpResponse = super().form_valid(form)
        record_own(self.request, "second_factor.added", TOTP)
        self.request.session[SECOND_FACTOR] = self.request.user.pk
        return response


class Remove(DeactivateTOTPView):  # type: ignore[misc]
    """Do without the second factor from now on."""

    @transaction.atomic
    def form_valid(self, form: Any) -> HttpResponse:
        """Delete it, and the recovery codes with it."""
        response: HttpResponse = super().form_valid(form)
        record_own(self.request, "second_factor.removed", TOTP)
        self.request.session.pop(SECOND_FACTOR, None)
        return response


class NewCodes(_Refusing, GenerateRecoveryCodesView):  # type: ignore[misc]
    """Make new recovery codes; the old ones end."""

    @transaction.atomic
    def form_valid(self, form: Any) -> HttpResponse:
        """Make them."""
        response: HttpResponse = super().form_valid(form)
        record_own(self.request, "second_factor.codes_renewed", CODES)
        return response


class Codes(ViewRecoveryCodesView):  # type: ignore[misc]
    """Show new recovery codes, once."""
