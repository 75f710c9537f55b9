"""Who drives the machines of a real cluster, and what they have told of members."""

from django.conf import settings
from django.db import models

from gpuplatform.common import clock
from queues.models.fields import NameField
from scheduling.members import End, Member
from scheduling.models.placements import Admission
from scheduling.muster import MemberName, Slot

RELEASED = "released"  # gone because it was asked to, or was never there


class Agent(models.Model):
    """A program that starts and stops members on nodes of its own, and reports over REST.

    ``epoch``: which of its memories counts; reports of an earlier one are refused.
    ``sequence``: the number of the last report taken in this epoch. ``silent_since``: nothing
    was heard of it for too long; its nodes count as not ready.
    """

    name = NameField(unique=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="agents")
    epoch = models.PositiveIntegerField(default=0)
    sequence = models.PositiveBigIntegerField(default=0)
    version = models.CharField(max_length=64, blank=True)  # its own word of what it is
    created_at = models.DateTimeField(default=clock.now)
    epoch_at = models.DateTimeField(default=clock.now)
    heard_at = models.DateTimeField(default=clock.now)
    silent_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="agent_has_a_name")
        ]

    def __str__(self) -> str:
        return self.name


class AgentNode(models.Model):
    """A node that an agent owns. ``ready``: what it said last, whatever is thought of it since."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="nodes")
    name = NameField(unique=True)
    ready = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return f"{self.name} of {self.agent}"


class MemberState(models.Model):
    """One member of one attempt, as its agent has told.

    ``serial``: which member of this name; a pod that left with surplus may come back in the same
    attempt as the next one. ``ready_at``: when it was ready first; ``unready_since``: since when
    it no longer is. ``gone_at``: when its last process was gone; then ``end`` says why.
    ``checkpoint_at``: up to when its progress is safe.
    """

    admission = models.ForeignKey(Admission, models.CASCADE, related_name="member_states")
    attempt = models.PositiveIntegerField()
    pod_set = NameField()
    node = NameField()
    slot = models.PositiveIntegerField()
    serial = models.PositiveIntegerField(default=1)
    ready_at = models.DateTimeField(null=True, blank=True)
    unready_since = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)
    end = models.CharField(
        max_length=8,
        blank=True,
        choices=[(word, word) for word in (*(end.value for end in End), RELEASED)],
    )
    exit_code = models.IntegerField(null=True, blank=True)
    why = models.CharField(max_length=64, blank=True)
    checkpoint_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("admission", "id")
        constraints = [
            models.UniqueConstraint(
                fields=["admission", "attempt", "pod_set", "node", "slot", "serial"],
                name="one_state_per_member",
            ),
            models.CheckConstraint(
                condition=models.Q(gone_at=None, end="")
                | (models.Q(gone_at__isnull=False) & ~models.Q(end="")),
                name="a_member_is_gone_for_a_reason",
            ),
        ]
        indexes = [
            models.Index(fields=["node"], condition=models.Q(gone_at=None), name="members_by_node")
        ]

    def __str__(self) -> str:
        return str(MemberName(self.place, self.serial))

    @property
    def place(self) -> Slot:
        """Return the room that the member takes."""
        member = Member(self.pod_set, self.node, self.slot)
        return Slot(self.admission_id, self.attempt, member)
