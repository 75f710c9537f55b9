"""How programs sign in: ``Authorization: Bearer <token>``, stored hashed by knox."""

from knox.auth import TokenAuthentication


class BearerAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox is untyped
    """Accept an ApiToken; its scopes and team limit travel on ``request.auth``."""

    www_authenticate_realm = "gpuplatform"
