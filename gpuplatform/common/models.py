"""Tables of the ground floor: who changed what, what changed when, who may decide, what lasts."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock


class Change(models.Model):
    """Something that a cycle or a page may want to look at again; written with the change itself.

    A reader that has seen all ids up to n asks for ids above n minus an overlap, because a
    lower id may be committed later than a higher one.
    """

    at = models.DateTimeField(default=clock.now, db_index=True)
    topic = models.CharField(max_length=32)
    key = models.CharField(max_length=4000, blank=True)  # several, with commas between them

    def __str__(self) -> str:
        return f"{self.topic} {self.key}"


class AuditEntry(models.Model):
    """Who changed what, when and why. Append-only; written in the change's own transaction."""

    at = models.DateTimeField(default=clock.now, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        related_name="audit_entries",
    )
    actor_name = models.CharField(max_length=150)  # "system" where no person acted
    action = models.CharField(max_length=64)  # e.g. "cluster_queue.updated"
    subject_kind = models.CharField(max_length=64)
    subject = models.CharField(max_length=255)
    team = models.CharField(max_length=63, blank=True)  # whose lead may read the entry
    reason = models.TextField(blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["subject_kind", "subject", "-id"], name="audit_by_subject")
        ]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action} {self.subject}"


class AuditSeal(models.Model):
    """A link of the chain that makes changes of the audit trail show (``common.sealing``).

    ``entry`` is no foreign key: a seal outlives the entry that somebody takes away.
    """

    number = models.BigIntegerField(primary_key=True)  # 1, 2, 3 ...: two sealers make no fork
    entry = models.BigIntegerField(unique=True)  # id of the AuditEntry
    at = models.DateTimeField(default=timezone.now)  # by the machine's clock, whatever is played
    digest = models.CharField(max_length=64)  # of this entry and of the seal before

    def __str__(self) -> str:
        return f"{self.number} {self.digest}"


class TaskFailure(models.Model):
    """A way in which a task failed, and how often."""

    task = models.CharField(max_length=100)
    error = models.CharField(max_length=300)  # its kind and its words
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "error"], name="one_row_for_each_failure")
        ]

    def __str__(self) -> str:
        return f"{self.task} {self.error}"


class AnsweredRequest(models.Model):
    """A POST that somebody sent under a key, and its answer; ``code`` None: not yet answered."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=128)
    digest = models.CharField(max_length=64)  # of address and body
    at = models.DateTimeField(default=clock.now, db_index=True)
    code = models.PositiveSmallIntegerField(null=True)  # of HTTP
    body = models.JSONField(null=True)
    headers = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_answer_per_key")]

    def __str__(self) -> str:
        return f"{self.key} {self.code}"


class Lease(models.Model):
    """The right to decide, held by one process at a time.

    ``fence`` grows with every holder; a write that carries an older fence is refused.
    """

    name = models.CharField(max_length=32, primary_key=True)
    holder = models.CharField(max_length=255, blank=True)
    until = models.DateTimeField(default=timezone.now)
    fence = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} #{self.fence} {self.holder}"


class WorkState(models.TextChoices):
    """Where long work stands. Whoever does it (``common.longwork``) is the only writer."""

    WAITING = "waiting", _("waiting")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class LongWork(models.Model):
    """Work that takes longer than anybody waits for an answer; ``come`` of ``whole`` is done."""

    uid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    asked_name = models.CharField(max_length=150)
    state = models.CharField(max_length=9, choices=WorkState, default=WorkState.WAITING.value)
    come = models.PositiveIntegerField(default=0)
    whole = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    asked_at = models.DateTimeField(default=clock.now)
    started_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(default=clock.now, db_index=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    problem = models.JSONField(null=True, blank=True)  # what broke it off

    class Meta:
        abstract = True

    @property
    def is_open(self) -> bool:
        """Return whether it still waits or runs."""
        return self.state in OPEN


OPEN = (WorkState.WAITING, WorkState.RUNNING)


class Operation(LongWork):
    """A request of REST that is answered later (``common.later``), and then its answer.

    ``token`` is the digest of the token that asked, "" for a browser; ``scope`` and ``team_limit``
    are what it took to ask, and are needed again to see what came out.
    """

    kind = models.CharField(max_length=64)  # the name of the address
    method = models.CharField(max_length=6)
    path = models.CharField(max_length=2000)  # with the query
    body = models.BinaryField(default=bytes)
    headers = models.JSONField(default=dict)
    token = models.CharField(max_length=128, blank=True)
    scope = models.CharField(max_length=32)
    team_limit = models.IntegerField(null=True)
    code = models.PositiveSmallIntegerField(null=True)  # of HTTP
    answer = models.BinaryField(null=True)
    answer_headers = models.JSONField(default=dict)

    class Meta:
        ordering = ("-asked_at", "uid")
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=WorkState.values), name="operation_state_known"
            ),
            models.CheckConstraint(
                condition=~Q(state="done") | Q(answer__isnull=False),
                name="an_operation_says_something",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.path} by {self.asked_name}"
