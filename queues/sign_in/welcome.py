"""The end of a sign-in through the identity provider: inside, or on a page that says why not."""

import logging

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from allauth.socialaccount.models import SocialLogin
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from requests import RequestException

from queues.access import SECOND_FACTOR, actor_for
from queues.models import User
from queues.sign_in.arriving import arrive
from queues.sign_in.claims import BadClaims, comer_of

logger = logging.getLogger(__name__)
HOUR_S = 3600


def welcome(request: HttpRequest, arrival: SocialLogin) -> HttpResponse:
    """Let in who came, or say why they stay out."""
    try:
        comer = comer_of(arrival.claims)
    except BadClaims as error:
        return failed(request, error)
    try:
        user, refusal = arrive(comer)
    except IntegrityError:  # came twice at once, and was made meanwhile
        user, refusal = arrive(comer)
    if user is None:
        logger.warning("oidc.refused %s: %s", comer.username, refusal)
        return _page(request, str(refusal), 403)
    return _let_in(request, user, arrival)


def _let_in(request: HttpRequest, user: User, arrival: SocialLogin) -> HttpResponse:
    if request.user.is_authenticated:
        logout(request)
    request.session.set_expiry(round(settings.OIDC_SESSION_HOURS * HOUR_S))
    if settings.OIDC_IS_SECOND_FACTOR:
        request.session[SECOND_FACTOR] = user.pk
    account = arrival.account
    record_authentication(
        request, user, "socialaccount", provider=account.provider, uid=account.uid
    )
    actor = actor_for(user)
    if not actor.roles and not actor.teams:
        words = gettext("None of your groups has a place here: ask %(whom)s.")
        messages.warning(request, words % {"whom": settings.OIDC_ASK})
    login = Login(user=user, redirect_url=arrival.state.get("next"))
    response: HttpResponse = perform_login(request, login)
    return response


def failed(request: HttpRequest, error: BaseException | None) -> HttpResponse:
    """Return the page for a sign-in that came to nothing; the log says why."""
    is_away = isinstance(error, RequestException)
    logger.warning("oidc.failed %s: %s", type(error).__name__, error)
    return _page(request, "away" if is_away else "failed", 503 if is_away else 403)


def _page(request: HttpRequest, refusal: str, status: int) -> HttpResponse:
    context = {
        "refusal": refusal,
        "name": settings.OIDC_NAME,
        "ask": settings.OIDC_ASK,
    }
    return render(request, "queues/sign_in_refused.html", context, status=status)
