"""What the REST schema must know and cannot see: how programs sign in."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """``Authorization: Bearer <token>``."""

    target_class = "queues.tokens.BearerAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme as OpenAPI spells it."""
        del auto_schema
        return {"type": "http", "scheme": "bearer"}
