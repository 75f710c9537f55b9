"""What a client may send, for the schema alone; ``scheduling.workload_body`` reads it."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from gpuplatform.common.rest_shapes import values_of
from scheduling.specs import SLICE_MODES


@extend_schema_field(values_of({"type": ["string", "integer"]}))
class QuantityField(serializers.JSONField):
    """Amounts by resource, in Kubernetes notation or as integers."""


class TopologyInput(serializers.Serializer[Any]):
    """Where pods stand together."""

    mode = serializers.ChoiceField(["required", "preferred", "unconstrained"])
    level = serializers.CharField(required=False)


class SliceInput(serializers.Serializer[Any]):
    """Groups of ``size`` pods inside one domain of ``level``, or there as far as can be."""

    level = serializers.CharField()
    size = serializers.IntegerField(min_value=1)
    mode = serializers.ChoiceField(SLICE_MODES, required=False)


class SubgroupInput(serializers.Serializer[Any]):
    """Subgroups that start together."""

    size = serializers.IntegerField(min_value=1)
    min_subgroups = serializers.IntegerField(required=False, min_value=0)


class PodSetInput(serializers.Serializer[Any]):
    """Identical pods."""

    name = serializers.CharField(max_length=253)
    count = serializers.IntegerField(min_value=1, max_value=100_000)
    min_count = serializers.IntegerField(required=False, min_value=1)
    requests = QuantityField(required=False)
    node_selector = serializers.DictField(child=serializers.CharField(), required=False)
    tolerations = serializers.ListField(child=serializers.JSONField(), required=False)
    topology = TopologyInput(required=False)
    slice = SliceInput(required=False)
    slices = SliceInput(many=True, required=False)
    group = serializers.CharField(required=False, max_length=63)
    subgroup = SubgroupInput(required=False)
    device_locality = serializers.ChoiceField(
        ["any", "prefer-island", "restricted", "require-island"], required=False
    )
    device_memory_mib = serializers.IntegerField(required=False, min_value=0)


class WorkloadInput(serializers.Serializer[Any]):
    """A workload as a client submits it."""

    name = serializers.CharField(max_length=253)
    namespace = serializers.CharField(max_length=253)
    queue = serializers.CharField(max_length=253)
    priority_class = serializers.CharField(required=False)
    priority = serializers.IntegerField(required=False)
    labels = serializers.DictField(child=serializers.CharField(), required=False)
    annotations = serializers.DictField(child=serializers.CharField(), required=False)
    pod_sets = PodSetInput(many=True)
    min_member = serializers.IntegerField(required=False, min_value=1)
    role_minima = serializers.DictField(child=serializers.IntegerField(), required=False)
    elastic = serializers.BooleanField(required=False)
    preemptible = serializers.BooleanField(required=False)
    stateless = serializers.BooleanField(required=False)
    expected_duration_s = serializers.IntegerField(required=False, min_value=1)
    max_execution_time_s = serializers.IntegerField(required=False, min_value=1)
    checkpoint_interval_s = serializers.IntegerField(required=False, min_value=1)
    on_failure = serializers.ChoiceField(["restart", "fail", "keep"], required=False)
    max_retries = serializers.IntegerField(required=False, min_value=0)
    min_success = serializers.IntegerField(required=False, min_value=1)
    on_node_loss = serializers.ChoiceField(["replace", "requeue"], required=False)
    termination_grace_s = serializers.IntegerField(required=False, min_value=0, max_value=86_400)
    ttl_after_finished_s = serializers.IntegerField(required=False, min_value=0)
    admission_gates = serializers.ListField(child=serializers.CharField(), required=False)
    template = serializers.JSONField(required=False)


class PodSetChangeInput(serializers.Serializer[Any]):
    """How many pods a live pod set is to have, and how many of them are over."""

    name = serializers.CharField(max_length=253)
    count = serializers.IntegerField(required=False, min_value=1, max_value=100_000)
    finished = serializers.IntegerField(required=False, min_value=0)


class WorkloadChangeInput(serializers.Serializer[Any]):
    """What changes of a live workload; what is left out stays as it is."""

    pod_sets = PodSetChangeInput(many=True, required=False)
    last_checkpoint_at = serializers.DateTimeField(required=False)
    active = serializers.BooleanField(required=False)
    admission_gates = serializers.ListField(child=serializers.CharField(), required=False)
    reason = serializers.CharField(max_length=500, required=False)


class CheckpointInput(serializers.Serializer[Any]):
    """Up to when a running workload's progress is safe; left out: up to now."""

    at = serializers.DateTimeField(required=False)


class CheckAnswerInput(serializers.Serializer[Any]):
    """What somebody says of a workload that waits for approval."""

    state = serializers.ChoiceField(["Ready", "Retry", "Rejected"])
    message = serializers.CharField(max_length=500, required=False)
    retry_after_s = serializers.IntegerField(required=False, min_value=0)
