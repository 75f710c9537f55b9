"""The page of settings, for platform admins: read only, each value with where it is changed."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from gpuplatform.common import clock
from gpuplatform.common.yamls import CONTENT_TYPE, dumped
from gpuplatform.doors.installation.report import as_plain, installation
from gpuplatform.doors.installation.values import ORIGINS
from queues.access import actor_of, require

FACTS = {
    "kind": _("Kind"),
    "version": _("Version"),
    "error": _("Error"),
    "messages": _("Messages that wait"),
    "last_sign_s": _("Last sign of life, s ago"),
    "beat_wakes_every_s": _("Beat wakes it every, s"),
    "last_cycle_at": _("Last decision"),
    "last_cycle_ms": _("It took, ms"),
    "sends": _("Alerts are mailed"),
    "waiting": _("Waiting"),
    "failed": _("Tried in vain"),
    "tried": _("Tried in vain"),
    "given_up": _("Given up"),
    "last_sent_at": _("Last sent"),
    "oldest_due_at": _("Oldest due"),
    "sealed": _("Entries sealed"),
    "not_sealed_yet": _("Not sealed yet"),
    "last_sealed_at": _("Last sealed"),
    "head": _("Digest of the last seal"),
    "kinds_of_failures": _("Kinds of failures"),
    "days": _("In the last days"),
}


@require_safe
@require(lambda actor: actor.is_admin)
def settings_page(request: HttpRequest) -> HttpResponse:
    """Show what is set, where it comes from and how the parts are; ``?format=yaml`` as a file."""
    found = installation(clock.now())
    if request.GET.get("format") == "yaml":
        answer = HttpResponse("".join(dumped([as_plain(found)])), content_type=CONTENT_TYPE)
        answer["Content-Disposition"] = 'attachment; filename="settings.yaml"'
        return answer
    facts = [
        (part, [(FACTS.get(key, key), value) for key, value in part.facts.items()])
        for part in found.parts
    ]
    context = {"found": found, "parts": facts, "origins": ORIGINS, "actor": actor_of(request)}
    return render(request, "doors/settings.html", context)
