"""Pages of people, for platform admins: who may sign in, as what, and with which password."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.crypto import get_random_string
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpuplatform.common.narrowing import narrowing, refused
from gpuplatform.common.pages import rows_response, wanted_format
from gpuplatform.common.problems import Rejected, Stale
from queues import merging, pages
from queues.access import Actor, actor_of, require
from queues.descriptions import describe_person
from queues.forms import (
    GENERATED,
    TYPED,
    FactorForm,
    FirstPasswordForm,
    NewPasswordForm,
    PersonForm,
    add_problems,
    form_problems,
    team_places,
)
from queues.models import Team, User
from queues.services import add_person, edit_person, set_membership, set_password
from queues.sign_in import has_factor, remove_factors

PER_PAGE = 50
REFUSED, CONFLICT = 422, 412
SECOND_IDS, THIRD_IDS = "id_new_%s", "id_factor_%s"  # three forms stand on one page
# Without letters and digits that are taken for each other.
LETTERS, LETTER_COUNT = "abcdefghjkmnpqrstuvwxyz23456789", 16
form_page = require_http_methods(["GET", "HEAD", "POST"])
keeps_passwords = sensitive_post_parameters("password", "password_again")


def may_manage(actor: Actor) -> bool:
    """Return whether somebody may make people and change them."""
    return actor.may_manage_people


@require_safe
@require(lambda actor: actor.may_see_people)
def people_page(request: HttpRequest) -> HttpResponse:
    """Show everybody who may sign in, or once might."""
    asks = narrowing(request, ("q",))
    text = asks.wanted["q"]
    rows = pages.person_rows(text)
    rows = rows.none() if asks.told else rows
    if refusal := refused(request, asks.told):
        return refusal
    if wanted_format(request):
        return rows_response(request, "people", pages.PERSON_COLUMNS, pages.person_cells(rows))
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "text": text, "actor": actor_of(request)}
    context |= {"is_filtered": asks.is_set, "not_understood": asks.told}
    return render(request, "queues/people.html", context)


# ---- somebody new ------------------------------------------------------------------------------


@form_page
@never_cache
@keeps_passwords
@require(may_manage)
def person_new(request: HttpRequest) -> HttpResponse:
    """Make somebody, with roles, teams and a first password."""
    given = request.POST or None
    form, password = PersonForm(given, is_new=True), FirstPasswordForm(given)
    rows = team_places(pages.team_choices(), given, lead_of=request.GET.get("team", ""))
    forms = {"form": form, "password_form": password, "rows": rows}
    if given is None:
        return _show(request, None, forms)
    if not all([form.is_valid(), password.is_valid(), rows.is_valid()]):
        found = form_problems(form, password, *rows.forms)
        return _show(request, None, forms, REFUSED, problems=found)
    secret = secret_of(password.cleaned_data)
    try:
        user = _hire(actor_of(request).user, form, rows.wanted(), secret)
    except Rejected as error:
        mine = [p for p in error.problems if p.path == "password"]
        others = [p for p in error.problems if p.path != "password"]
        found = add_problems(form, others) + add_problems(password, mine)
        return _show(request, None, forms, REFUSED, problems=found)
    return _made(request, user, password.cleaned_data, secret)


@transaction.atomic
def _hire(actor: User | None, form: PersonForm, teams: dict[str, str], secret: str | None) -> User:
    """Make the person and their places in teams, all or nothing."""
    reason = form.cleaned_data["reason"]
    user = add_person(form.to_spec(), actor=actor, password=secret, reason=reason)
    for team in Team.objects.filter(name__in=teams):
        set_membership(team, user, teams[team.name], actor, reason)
    return user


def secret_of(data: dict[str, Any]) -> str | None:
    """Return the password that was typed or is made now; None for a service account."""
    if data["sign_in"] == GENERATED:
        return get_random_string(LETTER_COUNT, LETTERS)
    return str(data["password"]) if data["sign_in"] == TYPED else None


def _made(
    request: HttpRequest, user: User, data: dict[str, Any], secret: str | None
) -> HttpResponse:
    """Show a generated password, this once; else say that it is done."""
    if data["sign_in"] == GENERATED:
        context = {"person": user, "secret": secret}
        return render(request, "queues/person_password.html", context)
    messages.success(request, gettext("%(name)s is saved.") % {"name": user.username})
    return redirect("people")


# ---- somebody who is there ---------------------------------------------------------------------


@form_page
@require(may_manage)
def person_edit(request: HttpRequest, username: str) -> HttpResponse:
    """Change somebody's names, roles and admission."""
    user = _person(username)
    spec = describe_person(user)
    first = PersonForm.initial_of(spec) | {"seen": pages.as_seen(spec)}
    form = PersonForm(request.POST or None, initial=first)
    forms = _forms_of(user) | {"form": form}
    if request.method != "POST":
        return _show(request, user, forms)
    if not form.is_valid():
        return _show(request, user, forms, REFUSED, problems=form_problems(form))
    wanted, reason = form.to_spec(username), form.cleaned_data["reason"]
    try:
        actor = actor_of(request).user
        edit_person(wanted, actor=actor, reason=reason, if_seen=form.seen_state())
    except Stale as error:
        seen = merging.read_seen(form.data.get("seen", ""))
        told = " ".join(problem.message for problem in error.problems)
        conflict = {"words": told, "clashes": pages.clashes(seen, spec, wanted)}
        carried = request.POST.copy()
        shown = form.initial_of(merging.merge(seen, spec, wanted))
        for name, value in {**shown, "seen": pages.as_seen(spec)}.items():
            carried.setlist(name, value if isinstance(value, list) else [value])
        form.data = carried
        return _show(request, user, forms, CONFLICT, conflict=conflict)
    except Rejected as error:
        problems = add_problems(form, error.problems)
        return _show(request, user, forms, REFUSED, problems=problems)
    messages.success(request, gettext("%(name)s is saved.") % {"name": username})
    return redirect("people")


@require_POST
@never_cache
@keeps_passwords
@require(may_manage)
def person_password(request: HttpRequest, username: str) -> HttpResponse:
    """Give somebody another password."""
    user, form = _person(username), NewPasswordForm(request.POST, auto_id=SECOND_IDS)
    forms = _forms_of(user) | {"password_form": form}
    if not form.is_valid():
        return _show(request, user, forms, REFUSED, problems=form_problems(form))
    data = form.cleaned_data
    secret = secret_of(data) or ""
    try:
        set_password(user, secret, actor=actor_of(request).user, reason=data["reason"])
    except Rejected as error:
        problems = add_problems(form, error.problems)
        return _show(request, user, forms, REFUSED, problems=problems)
    return _made(request, user, data, secret)


@require_POST
@require(may_manage)
def person_factor(request: HttpRequest, username: str) -> HttpResponse:
    """Take the second factor off somebody who lost it, and their recovery codes with it."""
    user, form = _person(username), FactorForm(request.POST, auto_id=THIRD_IDS)
    if not form.is_valid():
        forms = _forms_of(user) | {"factor_form": form}
        return _show(request, user, forms, REFUSED, problems=form_problems(form))
    try:
        remove_factors(user, actor=actor_of(request).user, reason=form.cleaned_data["reason"])
    except Rejected as error:
        messages.error(request, error.problems[0].message)
    else:
        words = gettext("%(name)s signs in without a second factor now.")
        messages.success(request, words % {"name": username})
    return redirect("person-edit", username)


def _forms_of(user: User) -> dict[str, Any]:
    """Return the forms of somebody's page as they are first."""
    spec = describe_person(user)
    first = PersonForm.initial_of(spec) | {"seen": pages.as_seen(spec)}
    return {
        "form": PersonForm(initial=first),
        "password_form": NewPasswordForm(auto_id=SECOND_IDS),
        "factor_form": FactorForm(auto_id=THIRD_IDS),
    }


def _person(username: str) -> User:
    user: User | None = pages.person_rows().filter(username=username).first()
    if user is None:
        raise Http404
    return user


def _show(
    request: HttpRequest, user: User | None, forms: dict[str, Any], status: int = 200, **more: Any
) -> HttpResponse:
    context = {"person": user, "row": user, "rows": None} | forms | more
    context["has_factor"] = user is not None and has_factor(user)
    return render(request, "queues/person_form.html", context, status=status)
