"""Every unsafe method: the wrong person and the forged request change nothing at all."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client

from tests.matrix.canaries import foreign_in, names_in
from tests.matrix.doors import DOORS, HOLDER, PEOPLE, READERS_OF_ALL, TEAM_OF, Door
from tests.matrix.world import World, word
from tests.matrix.writes import JSON, WORKLOAD, WRITES, Write

pytestmark = pytest.mark.django_db
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
# What asking at all may write: not what this is about.
BESIDE = {"last_used_at", "expiry"}
# Statements that change no row, or only what is beside the point.
HARMLESS = re.compile(
    r"(SELECT|SAVEPOINT|RELEASE SAVEPOINT|ROLLBACK TO SAVEPOINT) "
    r'|UPDATE "\w+" SET "last_used_at" = %s WHERE '
    r'|(INSERT INTO|UPDATE|DELETE FROM) "django_session" '
)
Rows = dict[str, list[tuple[Any, ...]]]
Unchanged = Callable[[], bool]
REFUSED = {"login", "again", "401", "403", "404", "405", "422"}


def everything() -> Rows:
    """Return all rows of all tables."""
    return {
        model.__name__: sorted(model._default_manager.values_list(*_columns(model)), key=repr)  # noqa: SLF001
        for model in apps.get_models()
        if model.__name__ != "Session" and model._meta.managed  # noqa: SLF001
    }


def _columns(model: Any) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields if field.name not in BESIDE]  # noqa: SLF001


@pytest.fixture(scope="module")
def pristine(world: World, django_db_blocker: Any) -> Rows:
    """All rows as every test finds them."""
    with django_db_blocker.unblock():
        return everything()


@pytest.fixture
def unchanged(pristine: Rows) -> Iterator[Unchanged]:
    """Return whether all rows are as before; they are read only after a statement that writes."""
    wrote: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        wrote.extend([] if HARMLESS.match(sql) else [sql])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield lambda: not wrote or everything() == pristine


def code_of(response: Any) -> str:
    target = response.headers.get("Location", "")
    leaves = response.wsgi_request.path == "/logout/"  # whoever leaves is led to the door
    if response.status_code == 302 and target.startswith("/login/") and not leaves:
        return "login"
    if response.status_code == 302 and target == "/":
        return "home"
    if response.status_code == 302 and target.startswith("/account/password/again/"):
        return "again"
    return "ok" if response.status_code < 400 else str(response.status_code)


PERMITTED = [
    (write, who) for write in WRITES for who in PEOPLE if write.answer_to(who) not in REFUSED
]
FORBIDDEN = [(write, who) for write in WRITES for who in PEOPLE if write.answer_to(who) in REFUSED]


def name_of(value: Any) -> str:
    return str(value)


@pytest.mark.parametrize(("write", "who"), FORBIDDEN, ids=name_of)
def test_the_wrong_person_changes_nothing(
    browser: Callable[..., Client],
    program: Callable[[str], Client],
    write: Write,
    who: str,
    unchanged: Unchanged,
):
    body = write.body_by(browser("ada"))
    found = [write.send(browser(who), body)]
    if write.is_rest and who != "anonymous":
        found.append(write.send(program(who), body))
    assert {code_of(response) for response in found} == {write.answer_to(who)}
    if who not in READERS_OF_ALL:
        said = names_in(f"{write.path} {body}")
        for response in found:
            assert not foreign_in(response.content.decode(), TEAM_OF.get(who), {}) - said
    assert unchanged()


@pytest.mark.parametrize(("write", "who"), PERMITTED, ids=name_of)
def test_the_right_person_may(
    browser: Callable[..., Client], write: Write, who: str, unchanged: Unchanged
):
    body = write.body_by(browser("ada"))
    response = write.send(browser(who), body)
    answer, expected = code_of(response), write.answer_to(who)
    refusals = re.findall(r'error">([^<]*)<', response.content.decode())
    assert answer == expected or (answer, expected) == ("ok", "200"), refusals
    if write.answer_to(who) == "ok" and write.route != "logout/":
        assert not unchanged()


@pytest.mark.parametrize("write", [w for w in WRITES if w.route != "login/"], ids=str)
def test_a_forged_request_changes_nothing(
    browser: Callable[..., Client], write: Write, unchanged: Unchanged
):
    body = write.body_by(browser("ada"))
    assert code_of(write.send(browser("ada", strict=True), body)) == "403"
    assert unchanged()


def test_signing_in_is_protected_too(browser: Callable[..., Client]):
    response = browser(strict=True).post("/login/", {"username": "ada", "password": "?"})
    assert response.status_code == 403


KNOWN = {(write.method, write.route) for write in WRITES}
ONE_OF_EACH = list({door.route: door for door in DOORS}.values())


@pytest.mark.parametrize("door", ONE_OF_EACH, ids=str)
def test_what_is_not_in_the_table_is_refused_to_everybody(
    browser: Callable[..., Client], door: Door, unchanged: Unchanged
):
    for method in UNSAFE:
        if (method, door.route) not in KNOWN:
            response = getattr(browser("ada"), method.lower())(door.path)
            assert code_of(response) in {"403", "404", "405", "422", "home", "again"}, method
    assert unchanged()


@pytest.mark.parametrize("token", ["lea reading", "ada reading", "lea of ia"])
@pytest.mark.parametrize("write", [w for w in WRITES if w.is_rest], ids=str)
def test_a_token_writes_only_within_its_scopes_and_its_team(
    browser: Callable[..., Client],
    program: Callable[[str], Client],
    write: Write,
    token: str,
    unchanged: Unchanged,
):
    body = write.body_by(browser("ada"))
    assert code_of(write.send(program(token), body)) in {"403", "404", "422"}
    assert unchanged()


@pytest.mark.parametrize("write", [w for w in WRITES if w.is_rest], ids=str)
def test_an_admins_token_of_another_team_writes_nothing_here(
    browser: Callable[..., Client],
    program: Callable[[str], Client],
    write: Write,
    unchanged: Unchanged,
):
    body = write.body_by(browser("ada"))
    assert code_of(write.send(program("ada of ia"), body)) in {"403", "404", "422"}
    assert unchanged()


@pytest.mark.parametrize("query", ["", "?dry_run=All"])
@pytest.mark.parametrize("gpus", [1, 4, 6, 7, 400])
def test_the_reasons_for_and_against_a_workload_name_nobody_elses_things(
    program: Callable[[str], Client], gpus: int, query: str
):
    (pod_set,) = WORKLOAD["pod_sets"]
    pod_sets = [{**pod_set, "count": gpus}]
    body = {**WORKLOAD, "pod_sets": pod_sets}
    response = program("lea").post(f"/api/v1/workloads/{query}", body, content_type=JSON)
    assert response.status_code in {200, 201, 422}
    assert not foreign_in(response.content.decode(), "datos", HOLDER)


def test_a_refusal_at_a_foreign_queue_says_nothing_that_was_not_asked(
    program: Callable[[str], Client],
):
    body = {**WORKLOAD, "namespace": word("ia", "namespace"), "queue": word("ia", "door")}
    response = program("lea").post("/api/v1/workloads/", body, content_type=JSON)
    assert response.status_code == 422
    assert not foreign_in(response.content.decode(), "datos", {}) - names_in(str(body))
