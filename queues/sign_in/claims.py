"""What an identity provider says about somebody: checked, and read into plain values.

The checks are those of OpenID Connect Core 1.0, 3.1.3.7: signature, issuer, audience, time, nonce.
"""

import hmac
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from django.conf import settings

# Never "none", and nothing that is signed with a secret that we share with others.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
LEEWAY_S = 60
SUBJECT_LENGTH, NAME_LENGTH, GROUP_LENGTH, MOST_GROUPS = 191, 150, 255, 5000
NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")


class BadClaims(Exception):
    """The provider says something that cannot be believed; the text is for the log."""


@dataclass(frozen=True, slots=True)
class Comer:
    """Somebody whom the provider vouches for; ``subject`` never changes and is never reused."""

    subject: str
    username: str
    first_name: str
    last_name: str
    email: str
    email_verified: bool
    groups: frozenset[str]


def verified_claims(token: str, keys: Any, *, issuer: str, nonce: str) -> dict[str, Any]:
    """Return what an ID token says.

    Args:
        token: the ID token as it came.
        keys: the provider's published keys (JWKS).
        issuer: the provider as its discovery document calls it.
        nonce: what the sign-in was begun with.

    Raises:
        BadClaims: it is not for us, not now, not for this sign-in, or not signed by the provider.
    """
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            _key_of(token, keys),
            algorithms=ALGORITHMS,
            audience=settings.OIDC_CLIENT_ID,
            issuer=issuer,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as error:
        raise BadClaims(f"ID token: {error}") from error
    if not nonce or not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise BadClaims("ID token: another nonce")
    party = claims.get("azp", settings.OIDC_CLIENT_ID)
    if party != settings.OIDC_CLIENT_ID:
        raise BadClaims("ID token: issued to another client")
    return claims


def _key_of(token: str, keys: Any) -> jwt.PyJWK:
    """Return the key that signed; a provider with a single key need not name it."""
    wanted = jwt.get_unverified_header(token).get("kid")
    known = [key for key in jwt.PyJWKSet.from_dict(keys).keys if key.public_key_use != "enc"]
    found = known if wanted is None else [key for key in known if key.key_id == wanted]
    if len(found) != 1:
        raise BadClaims("ID token: signed with a key that the provider does not publish")
    return found[0]


def comer_of(claims: Mapping[str, Any]) -> Comer:
    """Return who it is.

    Raises:
        BadClaims: the subject or the groups are not what they should be.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_LENGTH or "\0" in subject:
        raise BadClaims("the subject is no short text")
    first, _, last = _text(claims, "name").partition(" ")
    given, family = _text(claims, "given_name"), _text(claims, "family_name")
    email = _text(claims, "email")
    return Comer(
        subject=subject,
        username=_username(_text(claims, "preferred_username"), email.partition("@")[0]),
        first_name=(given or first)[:NAME_LENGTH],
        last_name=(family or last)[:NAME_LENGTH],
        email=email,
        email_verified=claims.get("email_verified") in (True, "true"),
        groups=_groups(claims),
    )


def _text(claims: Mapping[str, Any], name: str) -> str:
    """Return a claim without what nobody can see or type; "" for what is no text."""
    value = claims.get(name)
    if not isinstance(value, str):
        return ""
    composed = unicodedata.normalize("NFKC", value)
    return "".join(c for c in composed if unicodedata.category(c)[0] != "C").strip()


def _username(*wanted: str) -> str:
    """Return the first of the wanted names that leaves anything, as a user name may be spelled."""
    for text in wanted:
        if name := NOT_IN_NAMES.sub("-", text.casefold()).strip("-")[:NAME_LENGTH]:
            return name
    return "person"


def _groups(claims: Mapping[str, Any]) -> frozenset[str]:
    found = _at(claims, settings.OIDC_GROUPS_CLAIM)
    groups = [found] if isinstance(found, str) else [] if found is None else found
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise BadClaims(f"{settings.OIDC_GROUPS_CLAIM} is no list of texts")
    if len(groups) > MOST_GROUPS:
        raise BadClaims(f"more than {MOST_GROUPS} groups")
    return frozenset(g for g in groups if 0 < len(g) <= GROUP_LENGTH and "\0" not in g)


def _at(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim by its name or, where none is called so, by a path with dots."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
