"""Who belongs where, and what a token may be."""

from datetime import timedelta

import pytest

from gpuplatform.common.problems import Rejected
from queues import services
from queues.models import Membership, PlatformRole
from tests.queues.test_services import codes, entries

pytestmark = pytest.mark.django_db


def test_membership_is_set_changed_and_taken_away(ada, datos, eve):
    services.set_membership(datos, eve, "member", ada)
    services.set_membership(datos, eve, "member", ada)
    services.set_membership(datos, eve, "lead", ada, reason="promoted")
    assert Membership.objects.get().role == "lead"
    services.set_membership(datos, eve, None, ada)
    services.set_membership(datos, eve, None, ada)
    assert not Membership.objects.exists()
    expected = ["membership.set", "membership.set", "membership.removed"]
    assert entries(subject="datos", team="datos") == expected
    with pytest.raises(Rejected):
        services.set_membership(datos, eve, "king", ada)


def test_platform_roles_are_granted_and_revoked_once(ada, eve):
    for granted in (True, True, False, False):
        services.set_platform_role(eve, "auditor", granted, actor=ada)
    assert entries(subject="eve") == ["platform_role.granted", "platform_role.revoked"]
    assert not PlatformRole.objects.filter(user=eve).exists()
    with pytest.raises(Rejected):
        services.set_platform_role(eve, "king", True, actor=ada)


def test_a_person_has_a_name_of_their_own(ada):
    robot = services.create_person("robot", actor=ada)
    assert not robot.has_usable_password()
    with pytest.raises(Rejected) as caught:
        services.create_person("robot", actor=ada)
    assert codes(caught) == [("username", "duplicate")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": " "}, ("name", "required")),
        ({"name": "x" * 65}, ("name", "too_long")),
        ({"scopes": []}, ("scopes", "required")),
        ({"scopes": ["read", "fly"]}, ("scopes[1]", "unknown_choice")),
        ({"ttl": timedelta(0)}, ("ttl", "out_of_range")),
        ({"ttl": timedelta(days=400)}, ("ttl", "out_of_range")),
    ],
)
def test_a_token_has_a_name_known_scopes_and_an_end(ada, changes, expected):
    wanted = {"name": "laptop", "scopes": ["read"], "ttl": timedelta(days=1), **changes}
    with pytest.raises(Rejected) as caught:
        services.issue_token(ada, actor=ada, **wanted)
    assert codes(caught) == [expected]
