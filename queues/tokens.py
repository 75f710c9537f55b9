"""How programs sign in: ``Authorization: Bearer <token>``, stored hashed by knox."""

import binascii
import json
from collections.abc import Iterator
from hmac import compare_digest
from typing import Any

from django.db.models import Model, TextField
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext as _
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from knox.settings import CONSTANTS
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from gpuplatform.common.questions import Question
from queues.access import note_actor
from queues.known import Held
from queues.models import ApiToken, User
from queues.services import issue_token, note_use, revoke_token

__all__ = ["BearerAuthentication", "issue_token", "revoke_token"]


class BearerAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox is untyped
    """Accept an ApiToken; its scopes and team limit travel on ``request.auth``.

    Who holds it, and every role of theirs, are read with it in one statement, at each request:
    what was taken away counts no more. Expired tokens are refused and kept: their owner sees that
    they have expired.
    """

    www_authenticate_realm = "gpuplatform"

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return who asks with which token, and note what they may do; None: without any."""
        self._held: list[Held] = []
        found: tuple[User, ApiToken] | None = super().authenticate(request)
        if found is not None:
            note_actor(request, found[1], self._held)
        return found

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        """Return who holds ``token``, and note its use."""
        invalid = AuthenticationFailed(_("Invalid token."))
        if not token.isascii():
            raise invalid
        text = token.decode()
        try:
            digest = hash_token(text)
        except (TypeError, binascii.Error):
            raise invalid from None
        for found, held in _of_key(text[: CONSTANTS.TOKEN_KEY_LENGTH]):
            if compare_digest(digest, found.digest) and not self._cleanup_token(found):
                self.validate_user(found)
                note_use(found)
                self._held = held
                return found.user, found
        raise invalid

    def _cleanup_token(self, auth_token: Any) -> bool:
        """Return whether the token has expired; knox would also delete it, unaudited."""
        return auth_token.expiry is not None and auth_token.expiry <= timezone.now()


def _of_key(key: str) -> Iterator[tuple[ApiToken, list[Held]]]:
    """Yield the tokens whose text begins so, each with its owner and their roles. 1 query."""
    held: dict[tuple[Any, ...], set[Held]] = {}
    for *who, role, team, role_there, scopes in _BEARERS.ask([key]):
        mine = held.setdefault((*who, scopes), set())
        mine |= {(None, role)} if role else set()
        mine |= {(team, role_there)} if role_there else set()
    for found, mine in held.items():
        token = ApiToken.from_db("default", _OWN, found[: len(_OWN)])
        token.user = User.from_db("default", _OWNER, found[len(_OWN) : -1])
        token.scopes = json.loads(found[-1])
        yield token, list(mine)


def _columns(model: type[Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]  # noqa: SLF001


_OWN, _OWNER = [name for name in _columns(ApiToken) if name != "scopes"], _columns(User)
_BEARERS = Question(
    lambda keys: (
        ApiToken.objects.filter(token_key__among=keys)
        .order_by()
        .values_list(
            *_OWN,
            *(f"user__{name}" for name in _OWNER),
            "user__platform_roles__role",
            "user__memberships__team_id",
            "user__memberships__role",
            Cast("scopes", TextField()),
        )
    ),
    planned=True,
)
