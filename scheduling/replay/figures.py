"""How long work waited, and how much of the cluster was used: the figures of a tape."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from scheduling.engine.snapshot import Snapshot
from scheduling.engine.usage import is_gpu
from scheduling.replay.tape import HOUR_S, Stay, Tape
from scheduling.replay.trace import CLASSES, LARGEST, size_class

PERCENTILES = (50, 90, 99)
SIZES = (*(name for _, name in CLASSES), LARGEST)


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits in seconds. A percentile lies between its two neighbours, in proportion."""

    workloads: int
    mean_s: float
    p50_s: float
    p90_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class Use:
    """What one queue, or all of them, used: GPU-hours."""

    gpu_hours: float
    borrowed_gpu_hours: float
    lost_gpu_hours: float
    evictions: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that is told of one replay.

    ``utilisation`` and its twin, as long as work kept coming, are shares of the GPUs of nodes,
    of what is promised where there are no nodes; None: there are none of either.
    """

    name: str
    waits: Waits
    by_size: dict[str, Waits]
    by_team: dict[str, Waits]
    by_queue: dict[str, Waits]
    use: Use
    use_by_queue: dict[str, Use]
    utilisation: float | None
    utilisation_while_coming: float | None
    mean_completion_s: float
    held_idle_gpu_hours: float
    most_waiting: int
    unfinished: int
    makespan_s: float
    instants: int
    cycles: int


NO_WAITS = Waits(0, 0.0, 0.0, 0.0, 0.0)


def waits_of(stays: Iterable[Stay]) -> Waits:
    """Return the waits of some work."""
    waited = sorted(stay.waited_s for stay in stays)
    if not waited:
        return NO_WAITS
    at = (percentile(waited, percent) for percent in PERCENTILES)
    return Waits(len(waited), sum(waited) / len(waited), *at)


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the percentile of values in order; of none at all there is none."""
    place, rest = divmod((len(ordered) - 1) * percent, 100)
    if not rest:
        return ordered[place]
    return ordered[place] + (ordered[place + 1] - ordered[place]) * rest / 100


def gpus_there(site: Snapshot) -> int:
    """Return how many GPUs a site has; without nodes, how many it promises."""
    if site.nodes:
        offered = (node.allocatable.items() for node in site.nodes if node.usable)
        return sum(amount for one in offered for resource, amount in one if is_gpu(resource))
    quotas = (queue.quotas.items() for queue in site.cluster_queues.values())
    return sum(quota.nominal for one in quotas for fr, quota in one if is_gpu(fr.resource))


def figures_of(name: str, site: Snapshot, tape: Tape) -> Figures:
    """Return what is told of a tape."""
    stays, gpus = tape.stays, gpus_there(site)
    queues = sorted({*site.cluster_queues, *(stay.queue for stay in stays)})
    whole, coming = tape.end_s - tape.first_s, tape.last_s - tape.first_s
    use = Use(
        sum(tape.used.values()),
        sum(tape.borrowed.values()),
        sum(tape.lost_gpu_hours.values()),
        tape.evictions,
    )
    return Figures(
        name,
        waits_of(stays),
        _grouped(stays, lambda stay: size_class(stay.gpus), SIZES),
        _grouped(stays, lambda stay: stay.team, sorted({stay.team for stay in stays})),
        _grouped(stays, lambda stay: stay.queue, queues),
        use,
        {queue: _use(tape, queue) for queue in queues},
        _share(use.gpu_hours, gpus, whole),
        _share(sum(tape.used_while_coming.values()), gpus, coming),
        sum(s.finished_s - s.submitted_s for s in stays) / len(stays) if stays else 0.0,
        tape.held_idle_gpu_hours,
        tape.most_waiting,
        len(tape.unfinished),
        whole,
        tape.instants,
        tape.cycles,
    )


def _grouped(
    stays: Iterable[Stay], by: Callable[[Stay], str], names: Iterable[str]
) -> dict[str, Waits]:
    groups: dict[str, list[Stay]] = {name: [] for name in names}
    for stay in stays:
        groups[by(stay)].append(stay)
    return {name: waits_of(found) for name, found in groups.items()}


def _use(tape: Tape, queue: str) -> Use:
    lost, evicted = tape.lost_gpu_hours[queue], tape.evicted[queue]
    return Use(tape.used[queue], tape.borrowed[queue], lost, evicted)


def _share(gpu_hours: float, gpus: int, seconds: float) -> float | None:
    return gpu_hours * HOUR_S / (gpus * seconds) if gpus and seconds > 0 else None
