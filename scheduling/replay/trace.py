"""What is replayed: which work was submitted when, and for how long it runs once it runs."""

from collections.abc import Iterable
from dataclasses import dataclass

from scheduling.engine.snapshot import Workload
from scheduling.engine.usage import is_gpu

CLASSES = ((1, "1"), (4, "2-4"), (8, "5-8"))  # gang sizes in GPUs, up to and including
LARGEST = ">8"


@dataclass(frozen=True, slots=True)
class Arrival:
    """One workload of a trace. It is submitted at ``workload.created_at``, waiting.

    ``runs_s``: how long one run takes; an evicted one starts from the beginning. The scheduler
    knows no more of it than ``workload.duration_s`` says.
    """

    workload: Workload
    runs_s: float
    team: str

    @property
    def gpus(self) -> int:
        """Return how many GPUs the whole gang asks for."""
        return gpus_of(self.workload)


@dataclass(frozen=True, slots=True)
class Trace:
    """The arrivals in order of time, of equal times by key."""

    name: str
    arrivals: tuple[Arrival, ...]


def trace(name: str, arrivals: Iterable[Arrival]) -> Trace:
    """Return a trace of these arrivals, whatever their order."""
    ordered = sorted(arrivals, key=lambda one: (one.workload.created_at, one.workload.key))
    return Trace(name, tuple(ordered))


def gpus_of(workload: Workload) -> int:
    """Return how many GPUs, or slices of them, the whole gang asks for."""
    return sum(
        amount * pod_set.count
        for pod_set in workload.pod_sets
        for resource, amount in pod_set.requests.items()
        if is_gpu(resource)
    )


def size_class(gpus: int) -> str:
    """Return the size class of a gang."""
    return next((name for most, name in CLASSES if gpus <= most), LARGEST)
