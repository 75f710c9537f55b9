"""The page that takes manifests: the same importer as the command and REST."""

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from gpuplatform.common.problems import Rejected
from gpuplatform.doors.importer import import_documents
from queues.access import Actor, actor_of, require
from queues.choices import Role


class SubmitForm(forms.Form):
    """Manifests as text; a chosen file lands in the text by script, or is read here."""

    text = forms.CharField(
        label=_("Manifests"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"class": "code", "spellcheck": "false", "rows": 18}),
        help_text=_("YAML with one or several documents, or JSON; at most 1 MiB."),
    )
    file = forms.FileField(
        label=_("or a file"),
        required=False,
        widget=forms.FileInput(attrs={"data-into": "id_text", "accept": ".yaml,.yml,.json"}),
    )

    def manifests(self) -> str | bytes:
        """Return what was pasted, else what was uploaded."""
        text: str = self.cleaned_data["text"]
        upload = self.cleaned_data["file"]
        return text if text.strip() or upload is None else upload.read()


def _may_submit(actor: Actor) -> bool:
    return actor.has_role(Role.ADMIN) or bool(actor.team_ids)


@require_http_methods(["GET", "HEAD", "POST"])
@require(_may_submit)
def submit_page(request: HttpRequest) -> HttpResponse:
    """Try manifests without keeping anything, or take them in."""
    form = SubmitForm(request.POST or None, request.FILES or None)
    if request.method != "POST" or not form.is_valid():
        return render(request, "doors/submit.html", {"form": form})
    dry_run = "submit" not in request.POST
    try:
        report = import_documents(form.manifests(), actor=actor_of(request), dry_run=dry_run)
    except Rejected as error:
        context = {"form": form, "problems": error.problems}
        return render(request, "doors/submit.html", context, status=422)
    context = {"form": form, "report": report}
    return render(
        request, "doors/submit.html", context, status=422 if report.all_rejected else 200
    )
