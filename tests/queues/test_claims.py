"""What an identity provider says is checked before it is believed, and read into plain values."""

import time

import jwt
import pytest

from queues.sign_in.claims import BadClaims, comer_of, verified_claims
from tests.queues.provider import CLIENT, key

ISSUER, NONCE = "https://id.acme.example/realm", "of this sign-in"
HOUR = 3600
SHARED = "a secret" * 8  # of client and provider


@pytest.fixture(autouse=True)
def client(settings):
    settings.OIDC_CLIENT_ID = CLIENT
    return settings


def public():
    return jwt.algorithms.RSAAlgorithm.to_jwk(key().public_key(), as_dict=True)


def token(signer="first", kid="one", without=(), **other):
    now = time.time()
    claims = {
        "iss": ISSUER,
        "aud": CLIENT,
        "iat": now,
        "exp": now + 60,
        "nonce": NONCE,
        "sub": "1",
    }
    said = {name: value for name, value in (claims | other).items() if name not in without}
    algorithm = {None: "none", SHARED: "HS256"}.get(signer, "RS256")
    by = key(signer) if algorithm == "RS256" else signer
    return jwt.encode(said, by, algorithm, {"kid": kid} if kid else None)


def read(sent, keys=None):
    published = {"keys": [public() | {"kid": "one", "use": "sig", "alg": "RS256"}]}
    return verified_claims(sent, keys or published, issuer=ISSUER, nonce=NONCE)


def test_a_token_for_us_now_is_believed():
    assert read(token(email="nora@acme.example"))["email"] == "nora@acme.example"
    assert read(token(aud=["other", CLIENT], azp=CLIENT))["sub"] == "1"
    assert read(token(exp=time.time() - 30))["sub"] == "1"  # clocks differ
    assert read(token(kid=None))["sub"] == "1"  # there is one key only


LIES = {
    "another nonce": {"nonce": "of another sign-in"},
    "no nonce": {"without": ["nonce"]},
    "another audience": {"aud": "somebody-else"},
    "another party": {"aud": [CLIENT, "x"], "azp": "x"},
    "another issuer": {"iss": "https://evil.example"},
    "expired": {"exp": time.time() - HOUR},
    "never ends": {"without": ["exp"]},
    "from the future": {"nbf": time.time() + HOUR},
    "made in the future": {"iat": time.time() + HOUR},
    "about nobody": {"without": ["sub"]},
    "another key": {"signer": "second"},
    "a key that is not published": {"kid": "two"},
    "not signed": {"signer": None},
    "signed with what both know": {"signer": SHARED},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_token_that_is_not_for_us_now_is_not(lie):
    with pytest.raises(BadClaims):
        read(token(**lie))


@pytest.mark.parametrize("sent", ["", "x", "a.b.c", None, 7, {}])
def test_what_is_no_token_is_not(sent):
    with pytest.raises(BadClaims):
        read(sent)


@pytest.mark.parametrize("keys", [{"keys": []}, {"keys": "x"}, {"keys": [{}]}, {"x": 1}])
def test_without_keys_nothing_is(keys):
    with pytest.raises(BadClaims):
        read(token(), keys)


def test_of_two_keys_a_token_names_its_own():
    two = {"keys": [public() | {"kid": "one"}, public() | {"kid": "two"}]}
    assert read(token(kid="two"), two)["sub"] == "1"
    with pytest.raises(BadClaims):
        read(token(kid=None), two)


def test_nobody_is_asked_for_without_a_nonce():
    with pytest.raises(BadClaims):
        verified_claims(token(nonce=""), {"keys": [public()]}, issuer=ISSUER, nonce="")


# ---- who it is -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "said", "groups"),
    [
        ("groups", {}, set()),
        ("groups", {"groups": ["/a", "/b", "/a"]}, {"/a", "/b"}),
        ("groups", {"groups": "/a"}, {"/a"}),
        ("groups", {"groups": ["", "x" * 256, "a\0"]}, set()),
        ("realm_access.roles", {"realm_access": {"roles": ["/a"]}}, {"/a"}),
        ("realm_access.roles", {"realm_access": "x"}, set()),
        ("https://a.example/groups", {"https://a.example/groups": ["/a"]}, {"/a"}),
    ],
)
def test_groups_stand_where_the_installation_says(settings, claim, said, groups):
    settings.OIDC_GROUPS_CLAIM = claim
    assert comer_of({"sub": "1"} | said).groups == groups


@pytest.mark.parametrize("said", [{"groups": one} for one in ({"a": 1}, [1], 7, ["x"] * 5001)])
def test_groups_that_are_none_are_refused(said):
    with pytest.raises(BadClaims, match="groups"):
        comer_of({"sub": "1"} | said)


@pytest.mark.parametrize("subject", [None, "", 7, "x" * 192, "a\0"])
def test_a_subject_is_a_short_text(subject):
    with pytest.raises(BadClaims, match="subject"):
        comer_of({"sub": subject})


@pytest.mark.parametrize("said", [True, "true", False, None, "yes", 1.5, "false", [True]])
def test_an_address_is_verified_only_if_the_provider_says_so(said):
    comer = comer_of({"sub": "1", "email": "a@b.example", "email_verified": said})
    assert comer.email_verified is (said in (True, "true"))


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("Nora", "nora"),
        ("Zoë Ünal", "zoë-ünal"),
        ("ﬁona", "fiona"),  # a ligature
        ("../../x", "..-..-x"),
        ("a\u202eb\u0000c", "abc"),
        ("", "who"),  # of the address
        ("/", "who"),
        (["nora"], "who"),
        ("x" * 300, "x" * 150),
    ],
)
def test_a_user_name_is_well_spelled(wanted, name):
    said = {"sub": "1", "preferred_username": wanted, "email": "who@b.example"}
    assert comer_of(said).username == name


def test_names_come_as_one_or_as_two():
    assert comer_of({"sub": "1", "name": "Nora Lind"}).last_name == "Lind"
    both = comer_of({"sub": "1", "name": "N L", "given_name": "Nora", "family_name": "Lind"})
    assert (both.first_name, both.last_name, both.username) == ("Nora", "Lind", "person")
