"""Every address, for everybody, in every format: the expected answer and no foreign row."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from gpuplatform.doors import examples
from tests.matrix.canaries import Found, foreign_in, names_in
from tests.matrix.doors import DOORS, PEOPLE, READERS_OF_ALL, REST, TEAM_OF, Door, routes
from tests.matrix.world import CODES

pytestmark = pytest.mark.django_db
Answers = Callable[[Door, str], Iterator[tuple[str, Any]]]
FRAGMENT = {"HX-Request": "true"}


def test_no_address_is_forgotten():
    assert {door.route for door in DOORS} == set(routes())


def address(door: Door, **query: str) -> str:
    joint = "&" if "?" in door.path else "?"
    return door.path + "".join(f"{joint}{name}={value}" for name, value in query.items())


def code_of(response: Any) -> str:
    if response.status_code == 302:
        target = response["Location"]
        if target.startswith("/account/password/again/"):
            return "again"
        return "login" if target.startswith("/login/") else "home" if target == "/" else target
    return str(response.status_code)


def text_of(response: Any) -> str:
    return b"".join(response).decode() if response.streaming else response.content.decode()


@pytest.fixture
def answers(browser: Callable[..., Client], program: Callable[[str], Client]) -> Answers:
    """Return what somebody gets in every way that a door can be asked."""

    def of(door: Door, who: str) -> Iterator[tuple[str, Any]]:
        client = browser(who)
        yield "page", client.get(door.path)
        if door.is_rest and who != "anonymous":
            yield "token", program(who).get(door.path)
        if door.is_manifest and who != "anonymous":
            yield "yaml", program(who).get(address(door, format="yaml"))
        if not door.is_rest:
            yield "csv", client.get(address(door, format="csv"))
            yield "json", client.get(address(door, format="json"))
            yield "fragment", client.get(door.path, headers=FRAGMENT)

    return of


def is_right_file(door: Door, form: str, response: Any) -> bool:
    kind = response["Content-Type"]
    if form == "yaml":
        return kind == "application/yaml"
    if not door.files or form not in {"csv", "json"}:
        return True
    if form == "json":
        return kind == "application/json" and json.loads(text_of(response)) is not None
    rows = list(csv.reader(io.StringIO(text_of(response))))
    return kind.startswith("text/csv") and {len(row) for row in rows} == {len(rows[0])}


def own_names(door: Door, form: str, who: str) -> Found:
    """Return what somebody must find: the things of their team, or of all for readers of all."""
    teams = list(CODES) if who in READERS_OF_ALL else [TEAM_OF[who]] if who in TEAM_OF else []
    found = {(team, kind) for team in teams for kind in door.shows}
    if door.files and form in {"csv", "json"}:  # files name a team by its slug
        return {(team, "team" if kind == "shown" else kind) for team, kind in found}
    return found


def harmless(door: Door) -> Found:
    """Return names that tell nothing: what was asked, and examples that are kept as a file."""
    asked = names_in(door.path)
    return asked | names_in(examples.FILE.read_text()) if door.shows_examples else asked


@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("door", DOORS, ids=str)
def test_everybody_gets_the_right_answer_and_no_foreign_row(
    answers: Answers, door: Door, who: str
):
    team = TEAM_OF.get(who)
    for form, response in answers(door, who):
        text = text_of(response)
        assert code_of(response) == door.answer_to(who), f"{form}: {text[:300]}"
        if who not in READERS_OF_ALL:
            assert not foreign_in(text, team, door.allowed) - harmless(door), form
        if response.status_code == 200:
            assert is_right_file(door, form, response), form
            assert own_names(door, form, who) <= names_in(text), form


@pytest.mark.parametrize("door", [door for door in DOORS if door.allowed], ids=str)
def test_no_allowance_is_kept_that_nobody_needs(
    answers: Answers, program: Callable[[str], Client], door: Door
):
    given = [
        (team, response) for who, team in TEAM_OF.items() for _, response in answers(door, who)
    ]
    if door.is_rest:
        given.append(("ia", program("ada of ia").get(door.path)))
    found = {kind for team, answer in given for _, kind in foreign_in(text_of(answer), team, {})}
    assert set(door.allowed) <= found


@pytest.mark.parametrize("holder", ["ada of ia", "lea of ia"])
@pytest.mark.parametrize("door", REST, ids=str)
def test_a_token_of_one_team_opens_no_row_of_another(
    program: Callable[[str], Client], door: Door, holder: str
):
    response = program(holder).get(door.path)
    text = text_of(response)
    if response.status_code == 200:
        assert not foreign_in(text, "ia", door.allowed) - harmless(door)
    theirs = "ian" if holder.startswith("ada") else "eve"  # lea has no part in IA
    expected = door.answer_to(theirs)
    if holder.startswith("ada") and door.is_money:
        is_of_datos = "/datos/" in door.path or "/budgets/datos-" in door.path
        expected = "404" if is_of_datos else "200"  # it acts as IA's lead
    if holder.startswith("ada") and door.path.startswith("/api/v1/audit/"):
        expected = "200"  # likewise
    if holder.startswith("ada") and "/webhooks/" in door.path and "200" in door.answers:
        expected = "200" if door.path.endswith("/v1/webhooks/") else "404"  # likewise
    assert code_of(response) == expected


@pytest.mark.parametrize("who", ["lea", "ada"])
@pytest.mark.parametrize("door", REST, ids=str)
def test_a_token_for_reading_opens_what_its_owner_sees_but_no_money(
    program: Callable[[str], Client], door: Door, who: str
):
    expected = "403" if door.takes_cost_scope else door.answer_to(who)
    if door.path == "/api/v1/manifests/":
        expected = "405"
    assert code_of(program(f"{who} reading").get(door.path)) == expected
