"""How allauth speaks to the one identity provider that the settings name."""

from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.base.constants import AuthError
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest
from django.shortcuts import redirect
from django.urls import reverse
from requests import RequestException

from queues.sign_in.arriving import provider_id
from queues.sign_in.claims import BadClaims, verified_claims
from queues.sign_in.welcome import failed, welcome

# What a provider that is away, or talks nonsense, comes up as.
ANSWERS_BADLY = (RequestException, OAuth2Error, BadClaims, KeyError, ValueError, TypeError)


class Conversation(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth is untyped
    """One sign-in: what is asked of the provider, and whether its answers are believed."""

    nonce = ""
    _config: dict[str, Any] | None = None

    @property
    def openid_config(self) -> dict[str, Any]:
        """Return the discovery document, which must be that of the issuer."""
        if self._config is None:
            config = self._read(self.get_provider().server_url)
            if str(config.get("issuer", "")).rstrip("/") != settings.OIDC_ISSUER:
                raise BadClaims("the discovery document is of another issuer")
            self._config = config
        return self._config

    def _read(self, address: str, **headers: str) -> dict[str, Any]:
        """Return the JSON object at an address of the provider."""
        with get_adapter().get_requests_session() as session:
            response = session.get(address, headers=headers)
            response.raise_for_status()
        found = response.json()
        if not isinstance(found, dict):
            raise BadClaims(f"no object at {address}")
        return found

    @property
    def basic_auth(self) -> bool:
        """Return how the client proves itself; Basic unless the provider says otherwise."""
        methods = self.openid_config.get("token_endpoint_auth_methods_supported")
        return "client_secret_post" not in (methods or ["client_secret_basic"])

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        """Return where the provider sends people back to."""
        del app
        return request.build_absolute_uri(reverse("provider-callback"))

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **more: Any
    ) -> SocialLogin:
        """Return who came, with what the provider says about them as ``claims``."""
        del request
        claims = self._claims(token, more["response"])
        account = SocialAccount(provider=app.provider_id, uid=claims["sub"])
        login = SocialLogin(account=account, provider=self.get_provider())
        login.claims = claims
        return login

    def _claims(self, token: SocialToken, answer: dict[str, Any]) -> dict[str, Any]:
        config = self.openid_config
        claims = verified_claims(
            answer.get("id_token") or "",
            self._read(config["jwks_uri"]),
            issuer=config["issuer"],
            nonce=self.nonce,
        )
        if not config.get("userinfo_endpoint"):
            return claims
        bearer = {"Authorization": f"Bearer {token.token}"}
        more = self._read(config["userinfo_endpoint"], **bearer)
        if more.get("sub") != claims["sub"]:  # OpenID Connect Core 1.0, 5.3.2
            raise BadClaims("the user information is about somebody else")
        return claims | more


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """The identity provider of the settings."""

    oauth2_adapter_class = Conversation


class SocialAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """There is one provider, and its failures are told on a page of ours."""

    def get_provider(self, request: HttpRequest, provider: str, client_id: Any = None) -> Provider:
        """Return it, whatever is asked for."""
        del provider, client_id
        app = SocialApp(
            provider=Provider.id,
            provider_id=provider_id(),
            name=settings.OIDC_NAME,
            client_id=settings.OIDC_CLIENT_ID,
            secret=settings.OIDC_CLIENT_SECRET,
            settings={
                "server_url": settings.OIDC_ISSUER,
                "oauth_pkce_enabled": True,
                "scope": settings.OIDC_SCOPES,
            },
        )
        return Provider(request, app=app)

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Take over: allauth would go on to make an account by rules of its own."""
        raise ImmediateHttpResponse(welcome(request, sociallogin))

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, **more: Any
    ) -> None:
        """Say what happened; who changed their mind comes back to the door."""
        del provider
        if error == AuthError.CANCELLED:
            raise ImmediateHttpResponse(redirect("login"))
        raise ImmediateHttpResponse(failed(request, more.get("exception")))
