"""Teams, who belongs to them, and the namespaces they own."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext as _

from queues.choices import AccountingMode, Role, TeamRole
from queues.models.fields import NameField, Versioned


class Team(Versioned):  # type: ignore[django-manager-missing]  # knox is untyped
    """A tenant: owns queues and namespaces, gets a bill."""

    name = models.SlugField(max_length=63, unique=True)
    display_name = models.CharField(max_length=100)
    cost_center = models.CharField(max_length=64, blank=True)
    accounting_mode = models.CharField(
        max_length=16, choices=AccountingMode, default=AccountingMode.SHOWBACK
    )
    description = models.TextField(blank=True)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(
                condition=models.Q(accounting_mode__in=AccountingMode.values),
                name="team_accounting_mode_known",
            ),
            models.CheckConstraint(condition=~models.Q(name=""), name="team_has_a_name"),
        ]

    def __str__(self) -> str:
        return self.display_name or self.name


class Membership(models.Model):
    """Somebody's place in a team.

    ``by_group``: a group at the identity provider gives it, and takes it away again.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=TeamRole, default=TeamRole.MEMBER)
    by_group = models.BooleanField(default=False)

    class Meta:
        ordering = ("team", "user")
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="one_membership_per_team"),
            models.CheckConstraint(
                condition=models.Q(role__in=TeamRole.values),
                name="membership_role_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class PlatformRole(models.Model):
    """A role on the whole platform; somebody may have several. ``by_group``: as memberships."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="platform_roles"
    )
    role = models.CharField(max_length=8, choices=Role)
    by_group = models.BooleanField(default=False)

    class Meta:
        ordering = ("user", "role")
        constraints = [
            models.UniqueConstraint(fields=["user", "role"], name="one_row_per_role"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="platform_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role}"


class Namespace(Versioned):
    """A Kubernetes namespace. Its owner pays for what runs in it without a queue."""

    name = NameField(unique=True)
    labels = models.JSONField(default=dict, blank=True)
    team = models.ForeignKey(
        Team, models.SET_NULL, null=True, blank=True, related_name="namespaces"
    )

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="namespace_has_a_name")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def selectable_labels(self) -> dict[str, str]:
        """Return the labels a selector sees: Kubernetes adds the name itself."""
        return {"kubernetes.io/metadata.name": self.name, **self.labels}


class GroupGrant(models.Model):
    """What a group at the identity provider gives: a place in a team, or a role on the platform.

    Either ``team`` with ``team_role``, or ``role``.
    """

    group = models.CharField(max_length=255)
    team = models.ForeignKey(
        Team, models.CASCADE, null=True, blank=True, related_name="group_grants"
    )
    team_role = models.CharField(max_length=8, choices=TeamRole, blank=True)
    role = models.CharField(max_length=8, choices=Role, blank=True)

    class Meta:
        ordering = ("group", "team", "role")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(team__isnull=False, team_role__in=TeamRole.values, role="")
                | models.Q(team__isnull=True, team_role="", role__in=Role.values),
                name="group_grant_one_thing",
            ),
            models.UniqueConstraint(
                fields=["group", "team"],
                condition=models.Q(team__isnull=False),
                name="group_grant_once_per_team",
            ),
            models.UniqueConstraint(
                fields=["group", "role"],
                condition=models.Q(team__isnull=True),
                name="group_grant_once_per_role",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group}: {self.gives}"

    @property
    def gives(self) -> str:
        """Return what members of the group get, in words."""
        if self.team is None:
            return str(self.get_role_display())
        words = {"team": str(self.team), "role": self.get_team_role_display()}
        return _("%(role)s of %(team)s") % words
