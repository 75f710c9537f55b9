"""What is turned away at the threshold, in pages and REST, whatever the view."""

import pytest
from django.test import Client


@pytest.mark.parametrize(
    "address", ["/api/v1/teams/%00/", "/api/v1/workloads/?queue=%00", "/queues/%00/", "/?a=%00"]
)
def test_a_nul_in_an_address_is_refused_before_any_query(client: Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 400
    if address.startswith("/api/"):
        assert answer["Content-Type"] == "application/problem+json"
        assert [error["code"] for error in answer.json()["errors"]] == ["BAD_TEXT"]


def test_a_body_without_a_length_is_refused_and_never_read_as_empty(client: Client) -> None:
    answer = client.put(
        "/api/v1/cluster-queues/cq/", b"", headers={"Transfer-Encoding": "chunked"}
    )
    assert answer.status_code == 411
    assert [error["code"] for error in answer.json()["errors"]] == ["NO_LENGTH"]
