"""How workloads and nodes look in JSON; the schema of what a client may send."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from gpuplatform.common import clock, reasons
from gpuplatform.common.kept_fields import KeptFields
from gpuplatform.common.rest_shapes import COUNT, FINDINGS, NUMBERS_TOLD, told, values_of
from scheduling import rest_shapes as shapes
from scheduling.counters import SOURCES, Counters
from scheduling.models import (
    AdmissionCheck,
    CheckState,
    MemberEnd,
    Placement,
    PodSet,
    Workload,
    WorkloadEvent,
)
from scheduling.selectors.counters import workload_counters
from scheduling.selectors.discretion import Discretion
from scheduling.selectors.life import why_inactive
from scheduling.selectors.reservations import as_fields, reservation_of
from scheduling.selectors.workloads import least_pods
from scheduling.shrinking import pods_held

JUDGED = {  # the answer of a dry run
    "type": "object",
    "required": ["dry_run", "warnings", "forecast"],
    "properties": {
        "dry_run": {"type": "boolean"},
        "warnings": FINDINGS,
        "forecast": FINDINGS["items"],
    },
}
MOST_MEMBERS = 100  # that are over, in one answer


class PodSetSerializer(KeptFields, serializers.ModelSerializer[PodSet]):
    """Identical pods of a workload; ``requests`` is what one pod asks for, canonical units."""

    requests = told(shapes.RESOURCES)
    node_selector = told(shapes.TEXTS)
    tolerations = told(shapes.TOLERATIONS)
    slices = told(shapes.SLICES)

    class Meta:
        model = PodSet
        fields = (
            "name",
            "count",
            "min_count",
            "wanted",
            "finished",
            "requests",
            "node_selector",
            "tolerations",
            "topology_mode",
            "topology_level",
            "slices",
            "group",
            "subgroup_size",
            "min_subgroups",
            "device_locality",
            "device_memory_mib",
        )


class PlacementSerializer(KeptFields, serializers.ModelSerializer[Placement]):
    """Pods on a node."""

    flavors = told(shapes.FLAVORS)
    devices = told(shapes.DEVICES)

    class Meta:
        model = Placement
        fields = ("pod_set", "node", "count", "flavors", "devices")


class CheckStateSerializer(KeptFields, serializers.ModelSerializer[CheckState]):
    """What an admission check says of a workload."""

    name = serializers.CharField(source="check_name")

    class Meta:
        model = CheckState
        fields = ("name", "state", "message", "by", "at", "retry_after_s", "retries")


class MemberEndSerializer(KeptFields, serializers.ModelSerializer[MemberEnd]):
    """A pod that was over before its gang was asked to stop."""

    class Meta:
        model = MemberEnd
        fields = ("attempt", "pod_set", "node", "slot", "end", "at", "exit_code", "why")


class AdmissionCheckSerializer(serializers.ModelSerializer[AdmissionCheck]):
    """An admission check, as it is read and written."""

    queues = serializers.ListField(child=serializers.CharField(), required=False)
    parameters = serializers.DictField(required=False)

    class Meta:
        model = AdmissionCheck
        fields = ("name", "kind", "queues", "parameters", "description", "version")
        read_only_fields = ("version",)


class AdmissionCheckInput(serializers.Serializer[AdmissionCheck]):
    """An admission check as it is written; a name in the body is that of the address."""

    name = serializers.CharField(max_length=253, required=False)
    kind = serializers.CharField(max_length=32)
    queues = serializers.ListField(child=serializers.CharField(), required=False)
    parameters = serializers.DictField(required=False)
    description = serializers.CharField(max_length=500, required=False, allow_blank=True)
    version = serializers.IntegerField(required=False, help_text="It is that of If-Match.")


class EventSerializer(KeptFields, serializers.ModelSerializer[WorkloadEvent]):
    """One line of a workload's story; ``other`` is null where the reader may not see it."""

    other = serializers.SerializerMethodField()
    facts = told(NUMBERS_TOLD)

    class Meta:
        model = WorkloadEvent
        fields = ("at", "kind", "reason", "facts", "other")

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_other(self, row: WorkloadEvent) -> UUID | None:
        """Return the preemptor of a victim, or the victim, if ``context["actor"]`` sees it."""
        other, actor = row.other, self.context.get("actor")
        seen = other is not None and actor is not None and actor.sees_team(other.team_id)
        return other.uid if other is not None and seen else None


class WorkloadRowSerializer(KeptFields, serializers.ModelSerializer[Workload]):
    """A workload in a list."""

    queue = serializers.CharField(source="queue_name")
    team = serializers.SlugRelatedField[Any](slug_field="name", read_only=True, allow_null=True)
    blockers = serializers.SerializerMethodField()
    waiting_since = serializers.DateTimeField(source="waits_since", read_only=True)

    class Meta:
        model = Workload
        fields = (
            "uid",
            "namespace",
            "name",
            "kind",
            "queue",
            "ceiling_queue",
            "team",
            "priority",
            "priority_class",
            "status",
            "outcome",
            "pending_reason",
            "blockers",
            "position",
            "gpus",
            "created_at",
            "admitted_at",
            "started_at",
            "finished_at",
            "waiting_since",
            "requeue_at",
            "inactive_reason",
            "version",
        )

    @extend_schema_field(shapes.BLOCKERS)
    def get_blockers(self, row: Workload) -> list[dict[str, Any]]:
        """Return why it waits, each with its sentence; what others have is an amount."""
        # ``context["actor"]`` is the reader; a list passes one ``Discretion`` for all its rows.
        discretion = self.context.get("discretion") or Discretion(self.context.get("actor"))
        return [_blocker(blocker) for blocker in discretion.blockers(row)]


def _blocker(blocker: dict[str, Any]) -> dict[str, Any]:
    facts = blocker.get("facts") or {}
    numbers = {**facts, **{k: v for k, v in blocker.items() if k != "facts" and v is not None}}
    code = str(blocker.get("code", ""))
    worded = str(facts.get("sub_code") or code)  # IMPOSSIBLE says which check found it
    return {
        **blocker,
        "severity": reasons.severity(worded),
        "sentence": reasons.sentence(worded, numbers),
        "next_step": reasons.next_step(worded, numbers),
    }


class WorkloadSerializer(WorkloadRowSerializer):
    """One workload, whole."""

    labels = told(shapes.TEXTS)
    annotations = told(shapes.TEXTS)
    role_minima = told(values_of(COUNT, "Pods, by pod set."))
    policies = told(shapes.POLICIES)
    warnings = told(FINDINGS)
    pod_sets = PodSetSerializer(many=True, read_only=True)
    placements = serializers.SerializerMethodField()
    events = EventSerializer(many=True, read_only=True)
    growth = serializers.SerializerMethodField()
    pods = serializers.SerializerMethodField()
    reservation = serializers.SerializerMethodField()
    termination_grace_s = serializers.IntegerField(source="grace_s", read_only=True)
    ttl_after_finished_s = serializers.IntegerField(
        source="ttl_s", read_only=True, allow_null=True
    )
    admission_gates = serializers.ListField(
        source="gates", child=serializers.CharField(), read_only=True
    )
    checks = CheckStateSerializer(many=True, read_only=True)
    inactive = serializers.SerializerMethodField()
    members = serializers.SerializerMethodField()
    counters = serializers.SerializerMethodField()

    class Meta(WorkloadRowSerializer.Meta):
        fields = (  # type: ignore[assignment]  # a longer tuple
            *WorkloadRowSerializer.Meta.fields,
            "labels",
            "annotations",
            "min_member",
            "role_minima",
            "elastic",
            "preemptible",
            "stateless",
            "expected_duration_s",
            "max_execution_time_s",
            "checkpoint_interval_s",
            "last_checkpoint_at",
            "growth",
            "pods",
            "reservation",
            "on_failure",
            "max_retries",
            "policies",
            "min_success",
            "on_node_loss",
            "termination_grace_s",
            "ttl_after_finished_s",
            "admission_gates",
            "requeues",
            "retries",
            "checks",
            "inactive",
            "members",
            "counters",
            "warnings",
            "template",
            "pod_sets",
            "placements",
            "events",
        )

    @extend_schema_field(shapes.GROWTH)
    def get_growth(self, row: Workload) -> dict[str, Any] | None:
        """Return since when a running one asks for more pods, and why it waits for them.

        A gang with a minimum asks since it started, so there is no instant.
        """
        if not row.growth:
            return None
        asks = Workload(blockers=row.growth.get("blockers") or [])
        return {"since": row.growth.get("since"), "blockers": self.get_blockers(asks)}

    @extend_schema_field(shapes.PODS)
    def get_pods(self, row: Workload) -> dict[str, int]:
        """Return how many pods are asked for, stand, and are needed to run."""
        wanted = sum(pod_set.wanted or pod_set.count for pod_set in row.pod_sets.all())
        standing = pods_held(row).total()
        return {"wanted": wanted, "standing": standing, "minimum": least_pods(row)}

    @extend_schema_field(shapes.RESERVATION)
    def get_reservation(self, row: Workload) -> dict[str, Any] | None:
        """Return what is reserved for a waiting gang: when it starts, where, what it costs."""
        actor = self.context.get("actor")
        return as_fields(reservation_of(row, actor)) if actor else None

    @extend_schema_field(shapes.INACTIVE)
    def get_inactive(self, row: Workload) -> dict[str, str] | None:
        """Return why it is not tried any more, by which check, in which words, by whom."""
        found = why_inactive(row)
        return asdict(found) if found else None

    @extend_schema_field(MemberEndSerializer(many=True))
    def get_members(self, row: Workload) -> Any:
        """Return the pods of the admission now held, or of the last one, that are over."""
        if not any(event.kind.startswith("member_") for event in row.events.all()):
            return []
        ends = MemberEnd.objects.filter(admission__workload=row).order_by("-at", "-id")
        return MemberEndSerializer(ends[:MOST_MEMBERS], many=True).data

    @extend_schema_field(shapes.COUNTERS)
    def get_counters(self, row: Workload) -> dict[str, Any]:
        """Return GPU-hours so far, and of which source each is; null: nobody measured it."""
        found = workload_counters(row, clock.now())
        hours = {
            f"{name}_gpu_hours": None if value is None else str(value)
            for name, value in found.hours.items()
        }
        return {"pending_s": found.pending_s, **hours, "sources": SOURCES}

    @extend_schema_field(PlacementSerializer(many=True))
    def get_placements(self, row: Workload) -> Any:
        """Return where the pods stand, of the admission now held."""
        held = Placement.objects.filter(
            admission__workload=row, admission__released_at=None, admission__is_part=False
        )
        return PlacementSerializer(held, many=True).data


class NewWorkloadSerializer(WorkloadSerializer):
    """A workload that has just been written: no check, place or use of it is there to be read."""

    checks = serializers.SerializerMethodField()  # type: ignore[assignment]  # of another kind

    @extend_schema_field(CheckStateSerializer(many=True))
    def get_checks(self, _row: Workload) -> list[Any]:
        """Return that no check was asked yet."""
        return []

    def get_pods(self, row: Workload) -> dict[str, int]:
        """Return how many pods are asked for and needed; none stands."""
        wanted = sum(pod_set.wanted or pod_set.count for pod_set in row.pod_sets.all())
        return {"wanted": wanted, "standing": 0, "minimum": least_pods(row)}

    def get_reservation(self, _row: Workload) -> None:
        """Return that nothing is reserved for it."""

    def get_counters(self, _row: Workload) -> dict[str, Any]:
        """Return counters that begin."""
        hours = {
            f"{name}_gpu_hours": None if value is None else str(value)
            for name, value in Counters().hours().items()
        }
        return {"pending_s": 0, **hours, "sources": SOURCES}

    def get_members(self, _row: Workload) -> list[Any]:
        """Return that no pod is over."""
        return []

    def get_placements(self, _row: Workload) -> list[Any]:
        """Return that it stands nowhere."""
        return []
