"""A REST client that speaks as somebody, and a count of every row there is."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

QUIET = {"django_session", "queues_apitoken"}  # written by signing in


@pytest.fixture
def rows() -> Callable[[], dict[str, int]]:
    """Return how many rows each table has."""

    def count() -> dict[str, int]:
        tables = set(connection.introspection.table_names()) - QUIET
        with connection.cursor() as cursor:
            found = {}
            for table in sorted(tables):
                cursor.execute(f'SELECT count(*) FROM "{table}"')
                found[table] = int(cursor.fetchone()[0])
        return found

    return count


@pytest.fixture
def send(token_of: Callable[..., str]) -> Callable[..., Any]:
    """Return a function that sends a request as a person with a fresh token."""

    def request(
        person: Any, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> Any:
        client = Client(raise_request_exception=False)
        content = body if isinstance(body, str | bytes) else json.dumps(body)
        headers = {"Authorization": token_of(person)} if person else {}
        return client.generic(
            method,
            path,
            content if body is not None else b"",
            content_type=kind,
            headers=headers,
        )

    return request


@pytest.fixture
def three_teams(datos: Any, ia: Any) -> None:
    """The three teams' queues on one node; Datos and IA own their namespaces."""
    write_three_teams()


@pytest.fixture(scope="module")
def three_teams_once(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The same for a whole module, rolled back after it."""
    from queues.models import Team  # noqa: PLC0415

    with django_db_blocker.unblock(), transaction.atomic():
        for name, shown in (("datos", "Datos"), ("ia", "IA")):
            Team.objects.create(name=name, display_name=shown)
        write_three_teams()
        yield
        transaction.set_rollback(True)


def write_three_teams() -> None:
    from queues.services import save_namespace  # noqa: PLC0415
    from queues.specs import NamespaceSpec  # noqa: PLC0415
    from tests.doors.samples import on_cluster  # noqa: PLC0415

    for name in ("datos", "ia"):
        save_namespace(NamespaceSpec(f"ns-{name}", team=name), actor=None)
    on_cluster(4, "kueue-three-teams")
