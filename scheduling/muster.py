"""Which members should stand on the strength of open admissions, and which should leave. Pure.

A member has a name of its own for every run: admission, attempt, pod set, node, slot and serial.
Pods that were taken from a gang that runs on are the last ones of their node: they carry the
gang's admission, with the slots above those that it keeps.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduling.members import Member

_NAME = re.compile(
    r"(?P<admission>[1-9]\d{0,17})\.(?P<attempt>[1-9]\d{0,8})\.(?P<pod_set>[^@]{1,253})"
    r"\.(?P<slot>0|[1-9]\d{0,8})\.(?P<serial>[1-9]\d{0,8})@(?P<node>[^@]{1,253})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """Room for one member of one attempt, whichever of its serials."""

    admission: int
    attempt: int
    member: Member


@dataclass(frozen=True, slots=True)
class MemberName:
    """The name of a member as agents write it: ``12.1.worker.0.1@node-3``."""

    slot: Slot
    serial: int = 1

    def __str__(self) -> str:
        member = self.slot.member
        head = f"{self.slot.admission}.{self.slot.attempt}.{member.pod_set}"
        return f"{head}.{member.slot}.{self.serial}@{member.node}"

    @classmethod
    def parse(cls, text: str) -> "MemberName":
        """Return the member that ``text`` names.

        Raises:
            ValueError: no member is called so.
        """
        found = _NAME.fullmatch(text)
        if found is None:
            raise ValueError(text)
        member = Member(found["pod_set"], found["node"], int(found["slot"]))
        slot = Slot(int(found["admission"]), int(found["attempt"]), member)
        return cls(slot, int(found["serial"]))


@dataclass(frozen=True, slots=True)
class Lot:
    """The pods of one admission: so many of a pod set on a node, in the order of their ranks.

    ``leaving``: they are being stopped. ``part_of``: the admission that they were taken from.
    """

    admission: int
    attempt: int
    leaving: bool
    pods: Sequence[tuple[str, str, int]]
    part_of: int | None = None


@dataclass(frozen=True, slots=True)
class Muster:
    """Who should stand, and who should leave, by the admission that ends when they are gone."""

    stand: Mapping[int, tuple[Slot, ...]]
    leave: Mapping[int, tuple[Slot, ...]]


def muster(lots: Iterable[Lot]) -> Muster:
    """Return the members of all admissions, in the order of their ranks."""
    lots = sorted(lots, key=lambda lot: (lot.part_of is not None, lot.admission))
    wholes = {lot.admission: lot for lot in lots if lot.part_of is None}
    taken: defaultdict[tuple[int, str, str], int] = defaultdict(int)  # slots of a node so far
    stand: dict[int, tuple[Slot, ...]] = {}
    leave: dict[int, tuple[Slot, ...]] = {}
    for lot in lots:
        whole = wholes.get(lot.part_of, lot) if lot.part_of is not None else lot
        (leave if lot.leaving else stand)[lot.admission] = tuple(_slots(lot, whole, taken))
    return Muster(stand, leave)


def _slots(lot: Lot, whole: Lot, taken: defaultdict[tuple[int, str, str], int]) -> Iterable[Slot]:
    for pod_set, node, count in lot.pods:
        key = whole.admission, pod_set, node
        first = taken[key]
        taken[key] += count
        for slot in range(first, first + count):
            yield Slot(whole.admission, whole.attempt, Member(pod_set, node, slot))
