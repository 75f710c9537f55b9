"""A 403 names what is missing: the role, the scope of the token, or the team."""

import pytest

from queues.access import NEEDED, Actor

pytestmark = pytest.mark.django_db


def test_every_right_that_is_insisted_on_is_what_its_table_says():
    for right, (roles, scope) in NEEDED.items():
        for role in roles:
            held = Actor(None, frozenset({role.value}), scopes=frozenset({scope}))
            assert getattr(held, right), right
            other = Actor(None, frozenset(), scopes=frozenset({scope}))
            assert not getattr(other, right), right


@pytest.mark.parametrize(
    ("who", "scopes", "method", "path", "said"),
    [
        ("ada", ["read"], "PUT", "cohorts/x/", "the scope quota:write"),
        ("lea", ["admin"], "PUT", "admission-checks/x/", "the role platform admin"),
        ("lea", ["cost:read"], "GET", "workloads/", "the scope read"),
        ("lea", ["read", "cost:close"], "POST", "prices/", "the role finance / platform admin"),
    ],
)
def test_a_refusal_over_rest_says_what_is_missing(  # noqa: PLR0917 - a table
    cast, client, token_of, who, scopes, method, path, said
):
    answer = client.generic(
        method,
        f"/api/v1/{path}",
        b"{}",
        content_type="application/json",
        headers={"Authorization": token_of(getattr(cast, who), *scopes)},
    )
    assert answer.status_code == 403, answer.text
    assert said in answer.json()["detail"]
