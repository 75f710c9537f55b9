"""An identity provider of flesh and blood: it speaks HTTP and signs with an RSA key of its own."""

import json
import time
from functools import cache
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client
from django.urls import reverse
from werkzeug import Request, Response

CLIENT, SECRET = "gpuplatform", "a secret"


def key(name="first"):
    """Return the private key called so; making one takes a while."""
    return _made(name)


@cache
def _made(_name):
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Double:
    """A provider at which ``said`` is who signs in; ``twist`` spoils the next ID token."""

    def __init__(self, server):
        self.server, self.issuer = server, server.url_for("/realm").rstrip("/")
        self.said = {"sub": "1001", "preferred_username": "nora", "groups": []}
        self.twist, self.extra, self.told, self.signer = {}, {}, {}, key()
        self.codes, self.asked = {}, []
        well_known = "/realm/.well-known/openid-configuration"
        server.expect_request(well_known).respond_with_handler(self._discover)
        server.expect_request("/realm/keys").respond_with_handler(self._keys)
        server.expect_request("/realm/token").respond_with_handler(self._token)
        server.expect_request("/realm/userinfo").respond_with_handler(self._userinfo)

    def _discover(self, _request: Request) -> Response:
        at = {"authorization": "auth", "token": "token"}
        document = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in at.items()}
        document |= {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"} | self.extra
        return _json(document)

    def _keys(self, _request: Request) -> Response:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(key().public_key(), as_dict=True)
        return _json({"keys": [public | {"kid": "one", "alg": "RS256", "use": "sig"}]})

    def _token(self, request: Request) -> Response:
        self.asked.append(request.form | {"who": request.authorization})
        nonce = self.codes.pop(request.form["code"], None)
        if nonce is None:
            return Response("no such code", 400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": nonce}
        claims |= self.said | self.twist
        token = jwt.encode(claims, self.signer, "RS256", {"kid": "one"})
        return _json({"access_token": "opaque", "token_type": "Bearer", "id_token": token})

    def _userinfo(self, _request: Request) -> Response:
        return _json(self.told)

    # ---- what a browser does ------------------------------------------------------------------

    def begin(self, browser, path=""):
        """Follow the button; return the parameters with which the provider is asked."""
        answer = browser.get(f"{reverse('provider-begin')}{path}")
        assert answer.status_code == 302, answer.text
        assert answer["Location"].startswith(f"{self.issuer}/auth?")
        return {name: v[0] for name, v in parse_qs(urlsplit(answer["Location"]).query).items()}

    def end(self, browser, asked, **other):
        """Come back with a code."""
        self.codes["a-code"] = asked["nonce"]
        query = {"code": "a-code", "state": asked["state"]} | other
        return browser.get(reverse("provider-callback"), query)

    def sign_in(self, browser=None, path="", **said):
        """Sign in as ``said``; return the browser and the answer."""
        browser = browser or Client()
        self.said |= said
        return browser, self.end(browser, self.begin(browser, path))


def _json(value) -> Response:
    return Response(json.dumps(value), content_type="application/json")
