"""The promises in Django's admin, for support: to look at, never to change.

Changes go through the services, which ask the rules and keep the audit trail.
"""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from queues import models

if TYPE_CHECKING:  # the class is generic for the type checker only
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


class ReadOnly(_ModelAdmin):
    """A table that can be looked at only."""

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Return that nothing is added here."""
        return False

    def has_change_permission(self, _request: HttpRequest, _row: Model | None = None) -> bool:
        """Return that nothing is changed here."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _row: Model | None = None) -> bool:
        """Return that nothing is deleted here."""
        return False


@admin.register(models.ApiToken)
class ApiTokenAdmin(ReadOnly):
    """Tokens without what identifies them."""

    list_display = ("name", "user", "team", "created", "expiry", "last_used_at")
    fields = ("name", "user", "team", "scopes", "created", "expiry", "last_used_at")


@admin.register(models.User)
class UserAdmin(ReadOnly):
    """People without their password's hash."""

    list_display = ("username", "email", "is_active", "last_login")
    fields = ("username", "email", "is_active", "is_superuser", "date_joined", "last_login")


admin.site.register(
    [
        models.ClusterQueue,
        models.Cohort,
        models.FlavorQuota,
        models.LocalQueue,
        models.Membership,
        models.Namespace,
        models.PlatformRole,
        models.PriorityClass,
        models.ResourceFlavor,
        models.Team,
        models.Topology,
    ],
    ReadOnly,
)
