"""How programs sign in: ``Authorization: Bearer <token>``, stored hashed by knox."""

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed

from queues.models import ApiToken, User
from queues.services import issue_token, note_use, revoke_token

__all__ = ["BearerAuthentication", "issue_token", "revoke_token"]


class BearerAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox is untyped
    """Accept an ApiToken; its scopes and team limit travel on ``request.auth``.

    Expired tokens are refused and kept: their owner sees that they have expired.
    """

    www_authenticate_realm = "gpuplatform"

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        """Return who holds ``token``, and note its use."""
        if not token.isascii():
            raise AuthenticationFailed(_("Invalid token."))
        user, found = super().authenticate_credentials(token)
        note_use(found)
        return user, found

    def _cleanup_token(self, auth_token: Any) -> bool:
        """Return whether the token has expired; knox would also delete it, unaudited."""
        return auth_token.expiry is not None and auth_token.expiry <= timezone.now()
