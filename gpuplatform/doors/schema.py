"""What the REST schema must know and cannot see: how programs sign in, and keys of POSTs."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from gpuplatform.common.once import HEADER

KEY = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="The same request with the same key counts once, for 24 hours.",
)


class Schema(AutoSchema):
    """The operations of REST; every POST may carry a key."""

    def get_override_parameters(self) -> list[Any]:
        """Return parameters beside those that the view names."""
        return [KEY] if self.method == "POST" else []


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """``Authorization: Bearer <token>``."""

    target_class = "queues.tokens.BearerAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme as OpenAPI spells it."""
        del auto_schema
        return {"type": "http", "scheme": "bearer"}
