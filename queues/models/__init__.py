"""Tables of the promises."""

from queues.models.cohorts import Cohort
from queues.models.flavors import ResourceFlavor, Topology, TopologyLevel
from queues.models.ownership import OwnedKind, Ownership
from queues.models.priorities import PriorityClass
from queues.models.queues import ClusterQueue, LocalQueue
from queues.models.quotas import FlavorQuota
from queues.models.requests import QuotaRequest
from queues.models.teams import GroupGrant, Membership, Namespace, PlatformRole, Team
from queues.models.tokens import ApiToken
from queues.models.users import User

__all__ = [
    "ApiToken",
    "ClusterQueue",
    "Cohort",
    "FlavorQuota",
    "GroupGrant",
    "LocalQueue",
    "Membership",
    "Namespace",
    "OwnedKind",
    "Ownership",
    "PlatformRole",
    "PriorityClass",
    "QuotaRequest",
    "ResourceFlavor",
    "Team",
    "Topology",
    "TopologyLevel",
    "User",
]
