"""Pages of one's own account: the password, and the tokens that programs sign in with."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext, override
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from gpuplatform.common.language import known_languages, language_of
from gpuplatform.common.problems import Rejected
from queues import pages
from queues.access import actor_of, require, visible
from queues.forms import TokenForm, add_problems
from queues.models import ApiToken, Team, User
from queues.services import issue_token, revoke_token, set_alert_mail, set_language, set_password
from queues.sign_in import has_factor

REFUSED = 422


@require_safe
@require()
def account_page(request: HttpRequest) -> HttpResponse:
    """Show who one is, and one's tokens."""
    return _show(request, _token_form(request))


def _token_form(request: HttpRequest, data: Any = None) -> TokenForm:
    actor = actor_of(request)
    teams = visible(Team.objects.all(), actor, "pk")
    return TokenForm(
        data,
        initial={"scopes": ["read"]},
        scopes=[(scope, scope) for scope in actor.useful_scopes],
        teams=[(team.name, str(team)) for team in teams],
    )


def _own_tokens(request: HttpRequest) -> Any:
    user = actor_of(request).user
    return ApiToken.objects.filter(user=user).select_related("team").order_by("-created")


def _show(request: HttpRequest, form: TokenForm, status: int = 200) -> HttpResponse:
    user = actor_of(request).user
    assert user is not None
    context = {
        "person": pages.person_rows().get(pk=user.pk),
        "has_factor": has_factor(user),
        "tokens": list(_own_tokens(request)),
        "form": form,
        "languages": known_languages(),
        "now": timezone.now(),
    }
    return render(request, "queues/account.html", context, status=status)


class ChangePassword(PasswordChangeView):
    """Change one's own password; the sessions of other browsers end."""

    template_name = "queues/account_password.html"
    success_url = reverse_lazy("account")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        """Write it as everything is written: audited."""
        user = self.request.user
        assert isinstance(user, User)
        set_password(user, form.cleaned_data["new_password1"], actor=user)
        update_session_auth_hash(self.request, user)
        messages.success(self.request, gettext("Your password is changed."))
        return HttpResponseRedirect(reverse("account"))

    def form_invalid(self, form: PasswordChangeForm) -> HttpResponse:
        """Show what is wrong, as every refused form."""
        response = super().form_invalid(form)
        response.status_code = REFUSED
        return response


@require_POST
@never_cache
@require()
def token_new(request: HttpRequest) -> HttpResponse:
    """Make a token and show its secret, this once."""
    actor, form = actor_of(request), _token_form(request, request.POST)
    if not form.is_valid():
        return _show(request, form, REFUSED)
    data = form.cleaned_data
    assert actor.user is not None
    team = Team.objects.filter(name=data["team"]).first() if data["team"] else None
    life = timedelta(days=data["days"])
    try:
        token, secret = issue_token(
            actor.user, data["name"], data["scopes"], actor=actor.user, team=team, ttl=life
        )
    except Rejected as error:
        add_problems(form, error.problems)
        return _show(request, form, REFUSED)
    url = request.build_absolute_uri(reverse("api-workloads"))
    line = f'curl -H "Authorization: Bearer $TOKEN" {url}'
    context = {"token": token, "secret": secret, "line": line}
    return render(request, "queues/token_secret.html", context)


@require_POST
@require()
def token_revoke(request: HttpRequest) -> HttpResponse:
    """Make one of one's own tokens useless."""
    key = request.POST.get("key", "").replace("\x00", "")
    token = _own_tokens(request).filter(token_key=key).first() if key else None
    if token is None:
        raise Http404
    revoke_token(token, actor=actor_of(request).user)
    messages.success(request, gettext("%(name)s is revoked.") % {"name": token.name})
    return redirect("account")


@require_POST
@require()
def alert_mail(request: HttpRequest) -> HttpResponse:
    """Take oneself off the mail about alerts, or back on it."""
    user, wanted = actor_of(request).user, request.POST.get("wanted") == "yes"
    assert user is not None
    set_alert_mail(user, wanted, actor=user)
    words = gettext("You get mail about alerts that concern you.")
    messages.success(request, words if wanted else gettext("You get no mail about alerts."))
    return redirect("account")


@require_POST
@require()
def language(request: HttpRequest) -> HttpResponse:
    """Choose the language of one's pages, or leave it to the browser."""
    user = actor_of(request).user
    assert user is not None
    try:
        set_language(user, request.POST.get("language", ""), actor=user)
    except Rejected as error:
        messages.error(request, " ".join(problem.message for problem in error.problems))
        return redirect("account")
    with override(language_of(request)):
        messages.success(request, gettext("The pages speak your language."))
    return redirect("account")
