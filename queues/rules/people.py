"""Rules of people: how they are called, what they may hold, and that an admin remains."""

from collections.abc import Collection, Iterator

from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _

from gpuplatform.common.problems import Problem
from queues.choices import Role
from queues.models import User
from queues.rules.words import RESERVED, check_choice, check_reserved, check_text
from queues.specs import PersonSpec

NAME_LENGTH, EMAIL_LENGTH = 150, 254
# The audit trail signs with "system" where no person acted.
RESERVED_NAMES = RESERVED | {"system"}
_spelling = UnicodeUsernameValidator()


def check_person(spec: PersonSpec) -> Iterator[Problem]:
    """Yield every problem of a person."""
    yield from _check_username(spec.username)
    yield from check_text(spec.first_name, "first_name", NAME_LENGTH)
    yield from check_text(spec.last_name, "last_name", NAME_LENGTH)
    yield from check_text(spec.email, "email", EMAIL_LENGTH)
    if spec.email:
        yield from _asked(validate_email, spec.email, "email", "bad_email")
    for index, role in enumerate(spec.roles):
        yield from check_choice(role, Role.values, f"roles[{index}]")


def _check_username(username: str) -> Iterator[Problem]:
    yield from check_text(username, "username", NAME_LENGTH)
    yield from check_reserved(username.lower(), "username", RESERVED_NAMES)
    yield from _asked(_spelling, username, "username", "bad_name")


def _asked(validator: object, text: str, path: str, code: str) -> Iterator[Problem]:
    """Yield what one of Django's validators says."""
    assert callable(validator)
    try:
        validator(text)
    except ValidationError as error:
        for message in error.messages:
            yield Problem(path, code, message)


def check_password(password: str, user: User) -> Iterator[Problem]:
    """Yield why ``password`` is too weak for ``user``; the settings name the rules."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        for each in error.error_list:
            yield Problem("password", each.code or "weak", each.messages[0])


def check_admin_left(admins: Collection[str], username: str, *, stays: bool) -> Iterator[Problem]:
    """Yield a problem if ``username`` is the last of the active ``admins`` and does not stay one.

    Without an admin nobody could make another one in the browser.
    """
    if not stays and set(admins) == {username}:
        words = _("{name} is the last active platform admin; make somebody else one first")
        yield Problem("roles", "last_admin", words.format(name=username))
