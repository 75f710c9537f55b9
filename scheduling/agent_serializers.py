"""The schema of what agents send and are answered; reading is done by ``agent_body``."""

from typing import Any

from rest_framework import serializers

from scheduling.agent_reports import MOST_REPORTS, Told
from scheduling.inputs import QuantityField


class AgentHelloInput(serializers.Serializer[Any]):
    """Who is there. Without ``epoch`` a new one begins: nothing is remembered."""

    epoch = serializers.IntegerField(required=False, min_value=1)
    version = serializers.CharField(required=False, max_length=64)


class AgentHelloAnswer(serializers.Serializer[Any]):
    """In which epoch it is, and the number of the last report that was taken."""

    agent = serializers.CharField()
    epoch = serializers.IntegerField()
    sequence = serializers.IntegerField()
    poll_s = serializers.FloatField()
    silent_after_s = serializers.FloatField()
    most_reports = serializers.IntegerField()


class AgentNodeInput(serializers.Serializer[Any]):
    """A machine: what it has, and whether it works. ``allocatable`` is its capacity if absent."""

    name = serializers.CharField(max_length=253)
    labels = serializers.DictField(child=serializers.CharField(), required=False)
    annotations = serializers.DictField(child=serializers.CharField(), required=False)
    taints = serializers.ListField(child=serializers.JSONField(), required=False)
    capacity = QuantityField(required=False)
    allocatable = QuantityField(required=False)
    ready = serializers.BooleanField(required=False)
    schedulable = serializers.BooleanField(required=False)


class AgentReportInput(serializers.Serializer[Any]):
    """One report: about a ``node``, a node that is gone (``name``), or a ``member``."""

    sequence = serializers.IntegerField(min_value=1)
    kind = serializers.ChoiceField([told.value for told in Told])
    at = serializers.DateTimeField(required=False)
    member = serializers.CharField(required=False)
    node = AgentNodeInput(required=False)
    name = serializers.CharField(required=False, max_length=253)
    exit_code = serializers.IntegerField(required=False, min_value=-255, max_value=255)
    why = serializers.CharField(required=False, max_length=64)


class AgentReportsInput(serializers.Serializer[Any]):
    """Reports of one epoch, numbered without a gap; none at all is a heartbeat."""

    epoch = serializers.IntegerField(min_value=1)
    reports = serializers.ListField(
        child=AgentReportInput(), required=False, max_length=MOST_REPORTS
    )


class AgentReceiptAnswer(serializers.Serializer[Any]):
    """The number of the last report, and how many were taken, known already, or of no use."""

    sequence = serializers.IntegerField()
    taken = serializers.IntegerField()
    repeated = serializers.IntegerField()
    ignored = serializers.IntegerField()


class DesiredWorkload(serializers.Serializer[Any]):
    """The workload of a member, with the annotations that are ours."""

    uid = serializers.UUIDField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    annotations = serializers.DictField(child=serializers.CharField())


class DesiredGang(serializers.Serializer[Any]):
    """The whole gang of a member: its size, the node of rank 0, its nodes in order of ranks."""

    size = serializers.IntegerField()
    leader = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField())


class DesiredMember(serializers.Serializer[Any]):
    """A member that should run. ``heard``: what was told of it: nothing, ready or unready."""

    member = serializers.CharField()
    workload = DesiredWorkload()
    admission = serializers.IntegerField()
    attempt = serializers.IntegerField()
    pod_set = serializers.CharField()
    node = serializers.CharField()
    slot = serializers.IntegerField()
    rank = serializers.IntegerField()
    gang = DesiredGang()
    heard = serializers.ChoiceField(["ready", "unready"], allow_blank=True)
    requests = QuantityField()
    gpus = serializers.IntegerField()
    devices = serializers.ListField(child=serializers.IntegerField(), allow_null=True)
    grace_s = serializers.IntegerField()
    container = serializers.JSONField(allow_null=True)
    command = serializers.CharField(allow_null=True)


class LeavingMember(serializers.Serializer[Any]):
    """A member that should be gone within ``grace_s``."""

    member = serializers.CharField()
    grace_s = serializers.IntegerField()


class DesiredAnswer(serializers.Serializer[Any]):
    """What should run on an agent's nodes, and what should leave them."""

    agent = serializers.CharField()
    epoch = serializers.IntegerField()
    run = DesiredMember(many=True)
    stop = LeavingMember(many=True)


class AgentAnswer(serializers.Serializer[Any]):
    """An agent as people see it."""

    agent = serializers.CharField()
    owner = serializers.CharField()
    state = serializers.ChoiceField(["heard", "silent"])
    heard_at = serializers.DateTimeField()
    epoch = serializers.IntegerField()
    sequence = serializers.IntegerField()
    version = serializers.CharField(allow_blank=True)
    nodes = serializers.ListField(child=serializers.CharField())
    members = serializers.IntegerField()


class AgentListAnswer(serializers.Serializer[Any]):
    """All agents."""

    results = AgentAnswer(many=True)
