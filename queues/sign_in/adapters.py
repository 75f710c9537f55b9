"""What allauth asks us: which messages to show, how to ask again, how secrets are kept."""

import base64
from hashlib import sha256
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.totp.internal.auth import generate_totp_secret
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from queues.models import User
from queues.sign_in.records import has_factor

SAID = {
    "mfa/messages/totp_activated.txt": _("Your second factor is set up."),
    "mfa/messages/totp_deactivated.txt": _("Your second factor is removed."),
}


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Nobody signs up here; what is done is said in our words."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Return that nobody makes themselves an account."""
        del request
        return False

    def add_message(
        self, request: HttpRequest, level: int, message_template: str = "", *_: Any, **more: Any
    ) -> None:
        """Say what concerns the second factor; a page says by itself that one is signed in."""
        words = more.get("message") or SAID.get(message_template)
        if words:
            super().add_message(request, level, message=str(words))

    def get_reauthentication_methods(self, user: User) -> list[dict[str, Any]]:
        """Return how somebody proves again who they are: by the second factor, if they have it."""
        methods = super().get_reauthentication_methods(user)
        factor = [one for one in methods if one["id"] == "mfa_reauthenticate"]
        return factor or methods

    def is_reauthentication_required(self, *, app: str, **more: Any) -> bool:
        """Return whether who signed in must prove it again; who has no means to need not."""
        user = context.request.user
        if not user.has_usable_password() and not has_factor(user):
            return False
        return bool(super().is_reauthentication_required(app=app, **more))


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Secrets of second factors are encrypted with the installation's own secret."""

    def encrypt(self, text: str) -> str:
        """Return what is stored."""
        return _box().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Return the secret; one that fits no code where ``SECRET_KEY`` was another then."""
        try:
            return _box().decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            return str(generate_totp_secret())

    def get_totp_label(self, user: User) -> str:
        """Return what an authenticator app calls the account."""
        return user.get_username()


def _box() -> Fernet:
    key = sha256(b"gpuplatform second factor " + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))
