"""The page that takes manifests: the same importer as the command and REST."""

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from gpuplatform.common.problems import Rejected
from gpuplatform.doors.importer import import_documents
from queues.access import Actor, actor_of, require, visible
from queues.choices import Role
from queues.models import ClusterQueue, LocalQueue

SHOWN = 50
EXAMPLE = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: my-training
  namespace: {namespace}
  labels:
    kueue.x-k8s.io/queue-name: {queue}
spec:
  parallelism: 2
  completions: 2
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: my-registry/my-training:1
          resources:
            requests: {{nvidia.com/gpu: 1}}
            limits: {{nvidia.com/gpu: 1}}
"""


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
    form, actor = SubmitForm(request.POST or None, request.FILES or None), actor_of(request)
    places = list(own_local_queues(actor))
    context = {"form": form, "places": places, "example": example_job(next(iter(places), None))}
    if request.method != "POST" or not form.is_valid():
        return render(request, "doors/submit.html", context)
    dry_run = "submit" not in request.POST
    try:
        report = import_documents(form.manifests(), actor=actor, dry_run=dry_run)
    except Rejected as error:
        context |= {"problems": error.problems}
        return render(request, "doors/submit.html", context, status=422)
    status = 422 if report.all_rejected else 200
    return render(request, "doors/submit.html", context | {"report": report}, status=status)


def own_local_queues(actor: Actor) -> QuerySet[LocalQueue]:
    """Return the doors through which the actor's work goes, by namespace. 1 query."""
    queues = visible(ClusterQueue.objects.all(), actor).values("name")
    return LocalQueue.objects.filter(cluster_queue__in=queues).order_by("namespace", "name")[
        :SHOWN
    ]


def example_job(door: LocalQueue | None) -> str:
    """Return a manifest to start from: a gang of two pods, for a queue of the reader if any."""
    namespace, queue = (door.namespace, door.name) if door else ("my-namespace", "my-queue")
    return EXAMPLE.format(namespace=namespace, queue=queue)
