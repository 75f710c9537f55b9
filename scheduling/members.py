"""The pods of a gang one by one: their names, and how they came to be over. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """One pod of a gang, named by where it stands.

    ``slot`` counts from 0 among the pods of its pod set on its node (``node`` "" where quota
    alone decides): where a gang gets or loses pods, the others keep their names.
    """

    pod_set: str
    node: str
    slot: int


class End(StrEnum):
    """How a member came to be over."""

    FINISHED = "finished"  # by itself, with exit code 0
    FAILED = "failed"  # by itself, with another one
    LOST = "lost"  # taken from it by the cluster: deleted, evicted, out of memory of the node


@dataclass(frozen=True, slots=True)
class MemberEnd:
    """A member that is over while its gang was not asked to stop.

    ``exit_code`` None: nobody knows it. ``why``: the cluster's own word, as ``OOMKilled``.
    """

    member: Member
    end: End
    at: datetime
    exit_code: int | None = None
    why: str = ""
