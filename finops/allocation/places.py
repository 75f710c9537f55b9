"""Where cost lands: accounts of teams, central buckets, and pools that pass everything on.

Source: FORMAT.md 2 and 3.
"""

from typing import NamedTuple

BUCKETS = frozenset(
    {
        "idle",
        "idle_unattributed",
        "over_allocation",
        "unmeasured",
        "platform",
        "preempted_work",
        "unallocated_namespace",
        "unallocated_label",
        "unallocated_queue",
        "unmounted_storage",
        "unallocated_tokens",
        "unknown_team",
    }
)

# Names that OpenCost gives to rows that belong to no namespace.
IDLE_NAMESPACE = "__idle__"
UNALLOCATED_NAMESPACE = "__unallocated__"
UNMOUNTED_NAMESPACE = "__unmounted__"


class Account(NamedTuple):
    """A team, or a central bucket; sorted as bills show them: teams by id, then buckets."""

    is_bucket: bool
    name: str


class ServingPool(NamedTuple):
    """The cost of a namespace that serves models for others, until its tokens divide it."""

    cluster: str
    namespace: str
    owner: Account


class SharedPool(NamedTuple):
    """The cost of a namespace that all teams carry, until its method divides it."""

    item: str


Place = Account | ServingPool | SharedPool


def team(name: str) -> Account:
    """Return the account of a team."""
    return Account(is_bucket=False, name=name)


def bucket(name: str) -> Account:
    """Return a central bucket."""
    assert name in BUCKETS, name
    return Account(is_bucket=True, name=name)


IDLE = bucket("idle")
IDLE_UNATTRIBUTED = bucket("idle_unattributed")
OVER_ALLOCATION = bucket("over_allocation")
UNMEASURED = bucket("unmeasured")
PLATFORM = bucket("platform")
PREEMPTED_WORK = bucket("preempted_work")
UNALLOCATED_NAMESPACE_BUCKET = bucket("unallocated_namespace")
UNALLOCATED_LABEL = bucket("unallocated_label")
UNALLOCATED_QUEUE = bucket("unallocated_queue")
UNMOUNTED_STORAGE = bucket("unmounted_storage")
UNALLOCATED_TOKENS = bucket("unallocated_tokens")
UNKNOWN_TEAM = bucket("unknown_team")

# What nobody could be named for: one finding adds them up.
NOBODYS = frozenset(
    {
        UNALLOCATED_NAMESPACE_BUCKET,
        UNALLOCATED_LABEL,
        UNALLOCATED_QUEUE,
        UNMOUNTED_STORAGE,
        UNALLOCATED_TOKENS,
        UNKNOWN_TEAM,
    }
)
