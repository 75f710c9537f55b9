"""Secrets that programs sign in with."""

from django.db import models
from knox.models import AbstractAuthToken

from queues.models.teams import Team


class ApiToken(AbstractAuthToken):  # type: ignore[misc]  # knox is untyped
    """A token of knox with a name, scopes and, if given, a limit to one team."""

    name = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)  # e.g. ["read", "workloads:submit"]
    team = models.ForeignKey(Team, models.CASCADE, null=True, blank=True, related_name="tokens")
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"
