"""How machines look in JSON."""

from typing import Any

from rest_framework import serializers

from gpuplatform.common.rest_shapes import FINDINGS, told
from scheduling import rest_shapes as shapes
from scheduling.models import Node
from scheduling.selectors.nodes import NodeRow

FORGOTTEN = {
    "type": "object",
    "required": ["name", "warnings"],
    "properties": {
        "name": {"type": "string"},
        "warnings": FINDINGS,
        "dry_run": {"type": "boolean"},
    },
}


class NodeSerializer(serializers.ModelSerializer[Node]):
    """A machine, as its cluster last reported it; amounts in canonical units.

    ``context["rows"]`` is what ``node_rows`` says of it, by name.
    """

    flavor = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField()
    gpus = serializers.SerializerMethodField()
    gpus_used = serializers.SerializerMethodField()
    gpus_free = serializers.SerializerMethodField()
    gpus_kept = serializers.SerializerMethodField()
    labels, annotations = told(shapes.TEXTS), told(shapes.TEXTS)
    taints = told(shapes.TAINTS)
    capacity, allocatable = told(shapes.RESOURCES), told(shapes.RESOURCES)

    class Meta:
        model = Node
        fields = (
            "name",
            "flavor",
            "state",
            "gpus",
            "gpus_used",
            "gpus_free",
            "gpus_kept",
            "labels",
            "annotations",
            "taints",
            "capacity",
            "allocatable",
            "ready",
            "schedulable",
            "draining",
            "version",
        )

    def _row(self, node: Node) -> NodeRow:
        rows: dict[str, NodeRow] = self.context["rows"]
        return rows[node.name]

    def get_flavor(self, node: Node) -> str:
        """Return the flavor that it belongs to, "" without one."""
        return self._row(node).flavor

    def get_state(self, node: Node) -> str:
        """Return ``ready``, ``cordoned`` or ``not ready``."""
        return self._row(node).state

    def get_gpus(self, node: Node) -> int:
        """Return how many GPUs it offers."""
        return self._row(node).gpus

    def get_gpus_used(self, node: Node) -> int:
        """Return how many of them somebody holds, by the platform or beside it."""
        return self._row(node).used

    def get_gpus_free(self, node: Node) -> int:
        """Return how many anybody may be given now: none of one that is cordoned or not ready."""
        return self._row(node).free

    def get_gpus_kept(self, node: Node) -> int:
        """Return how many wait unused for a gang; only short work may use them."""
        return self._row(node).kept


class NodeChangeInput(serializers.Serializer[Any]):
    """What changes of a machine: whether new pods may come."""

    schedulable = serializers.BooleanField()
    drain = serializers.BooleanField(required=False)
    reason = serializers.CharField(max_length=500, required=False)


class NodeSavedSerializer(NodeSerializer):
    """A machine after a change of it, and what the change means."""

    warnings = told(FINDINGS)
    dry_run = serializers.BooleanField(required=False)

    class Meta(NodeSerializer.Meta):
        fields = (  # type: ignore[assignment]  # a longer tuple
            *NodeSerializer.Meta.fields,
            "warnings",
            "dry_run",
        )
