"""Signing in with a password, or through the identity provider.

The second factor, where somebody has one, is asked for next.
"""

from http import HTTPStatus
from typing import Any

from allauth.account.internal.flows.login import perform_login
from allauth.account.models import Login
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.crypto import get_random_string
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from queues.patience import answer, count_attempt, forget
from queues.sign_in import may_use_password, note_password
from queues.sign_in.arriving import provider_id
from queues.sign_in.provider import ANSWERS_BADLY, Conversation
from queues.sign_in.welcome import failed

NONCE_LENGTH = 32


class PatientForm(AuthenticationForm):
    """User name and password; too many wrong ones have to wait."""

    def clean(self) -> dict[str, Any]:
        """Check the password, unless it is too soon for another attempt."""
        username = self.cleaned_data.get("username")
        if not username or not self.cleaned_data.get("password"):
            return dict(super().clean())  # no attempt
        key = count_attempt("sign-in", _who(self.request, username))
        found = super().clean()
        if not may_use_password(self.get_user()):
            words = gettext("Sign in with %(name)s: passwords are not taken any more.")
            raise ValidationError(words % {"name": settings.OIDC_NAME})
        forget(key)
        return dict(found)


class PatientLogin(LoginView):
    """The page to sign in; 429 with ``Retry-After`` where somebody has to wait."""

    authentication_form = PatientForm
    redirect_authenticated_user = True

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Tell the page of the identity provider, and whether passwords are for one alone."""
        name = settings.OIDC_NAME if settings.OIDC_ISSUER else ""
        is_last = bool(name and settings.LOCAL_SIGN_IN_ONLY)
        return super().get_context_data(**more) | {"provider": name, "is_last": is_last}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Let somebody in who has no second factor, and ask the others for it."""
        user = form.get_user()
        note_password(self.request, user)
        login = Login(user=user, redirect_url=self.get_success_url())
        response: HttpResponse = perform_login(self.request, login)
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show the page again."""
        return answer(super().form_invalid(form), form, HTTPStatus.OK)


def _who(request: HttpRequest | None, username: str) -> str:
    address = request.META.get("REMOTE_ADDR", "") if request is not None else ""
    return f"{address} {username.casefold()}"


# ---- through the identity provider -------------------------------------------------------------


@require_safe
@never_cache
def provider_begin(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider, with a state and a nonce that only this sign-in knows.

    A link and no form: form-action of our CSP would stop the way through the provider's pages.
    """
    if not settings.OIDC_ISSUER:
        raise Http404
    if request.user.is_authenticated:
        return redirect(settings.LOGIN_REDIRECT_URL)
    asked_for = request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        asked_for, {request.get_host()}, require_https=request.is_secure()
    )
    nonce = get_random_string(NONCE_LENGTH)
    provider = get_adapter(request).get_provider(request, provider_id())
    try:
        response: HttpResponse = provider.redirect(
            request,
            AuthProcess.LOGIN,
            next_url=asked_for if is_ours else None,
            auth_params={"nonce": nonce},
            nonce=nonce,  # kept with the state
        )
    except ANSWERS_BADLY as error:
        return failed(request, error)
    return response


class _Callback(OAuth2CallbackView):  # type: ignore[misc]  # allauth is untyped
    def _get_state(self, request: HttpRequest, provider: Any) -> Any:
        state, response = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce", "")
        return state, response


@require_safe
@never_cache
def provider_callback(request: HttpRequest) -> HttpResponse:
    """Take whom the provider sends back."""
    if not settings.OIDC_ISSUER:
        raise Http404
    answer = _Callback.adapter_view(Conversation(request, provider_id()))
    try:
        response: HttpResponse = answer(request)
    except ANSWERS_BADLY as error:
        return failed(request, error)
    return response
