"""Hands for tests of second factors: an authenticator app, and sign-ins step by step."""

import time

from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
)
from django.test import Client
from django.urls import reverse

from tests.conftest import PASSWORD


def code_of(secret, periods=0):
    """Return what an app shows now, or so many periods of 30 s from now."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + periods))


def by_password(username, password=PASSWORD, **extra):
    """Return a browser that has just typed a password, and the answer."""
    browser = Client()
    data = {"username": username, "password": password, **extra}
    return browser, browser.post("/login/", data)


def given(user):
    """Give somebody an app; return its secret and recovery codes."""
    secret = generate_totp_secret()
    TOTP.activate(user, secret)
    return secret, RecoveryCodes.activate(user).get_unused_codes()


def set_up(browser):
    """Set up an app in a browser that just signed in; return its secret and recovery codes."""
    path = reverse("mfa_activate_totp")
    secret = browser.get(path).context["form"].secret
    answer = browser.post(path, {"code": code_of(secret)})
    assert answer.status_code == 302, answer.context["form"].errors
    codes = browser.get(answer["Location"]).context["unused_codes"]
    return secret, codes


def enter(browser, code):
    """Answer to the question for a code."""
    return browser.post(reverse("mfa_authenticate"), {"code": code})
