"""What admitted work has earned: safety for a while, and progress that an eviction would lose.

Source: ``decisions.md`` 4.8 (cheapest eviction) and 4.9 (minimum runtime).
"""

from scheduling.engine.snapshot import ClusterQueue, Workload
from scheduling.engine.standing import standing
from scheduling.engine.usage import is_gpu, paired

SECONDS_PER_HOUR = 3600.0


def safe_until(queue: ClusterQueue, work: Workload) -> float:
    """Return the instant from which admitted work of ``queue`` may be preempted."""
    assert work.admission is not None
    return work.admission.admitted_at + queue.minimum_runtime.seconds


def is_safe(queue: ClusterQueue, work: Workload, preemptor: Workload, now: float) -> bool:
    """Return whether the minimum runtime of ``queue`` still protects its ``work``.

    Where the queue says so, it yields to strictly higher priority of the same queue.
    """
    if not queue.minimum_runtime.seconds or now >= safe_until(queue, work):
        return False
    same = preemptor.queue == work.queue and preemptor.priority > work.priority
    return not (same and queue.minimum_runtime.yields_to_own)


def lost_gpu_seconds(work: Workload, now: float) -> float:
    """Return the GPU-seconds that an eviction at ``now`` throws away.

    Counted since the last checkpoint, else since the admission; a slice counts as a GPU. Work
    without GPUs loses nothing by this measure.
    """
    assert work.admission is not None
    since = work.admission.admitted_at
    if work.last_checkpoint_at is not None:
        since = max(since, work.last_checkpoint_at)
    return gpus_held(work) * max(0.0, now - since)


def lost_gpu_hours(work: Workload, now: float) -> float:
    """Return :func:`lost_gpu_seconds` in the unit that people are told."""
    return lost_gpu_seconds(work, now) / SECONDS_PER_HOUR


def gpus_held(work: Workload) -> int:
    """Return the GPUs that are still held: pods that have finished lose nothing any more."""
    return sum(
        amount * assignment.count
        for pod_set, assignment in paired(work, standing(work))
        for resource, amount in pod_set.requests.items()
        if is_gpu(resource)
    )
