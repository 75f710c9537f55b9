"""Signing in with a password; the second factor, where somebody has one, is asked for next."""

from http import HTTPStatus
from typing import Any

from allauth.account.internal.flows.login import perform_login
from allauth.account.models import Login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse

from queues.patience import answer, count_attempt, forget
from queues.sign_in import note_password


class PatientForm(AuthenticationForm):
    """User name and password; too many wrong ones have to wait."""

    def clean(self) -> dict[str, Any]:
        """Check the password, unless it is too soon for another attempt."""
        username = self.cleaned_data.get("username")
        if not username or not self.cleaned_data.get("password"):
            return dict(super().clean())  # no attempt
        key = count_attempt("sign-in", _who(self.request, username))
        found = super().clean()
        forget(key)
        return dict(found)


class PatientLogin(LoginView):
    """The page to sign in; 429 with ``Retry-After`` where somebody has to wait."""

    authentication_form = PatientForm
    redirect_authenticated_user = True

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
