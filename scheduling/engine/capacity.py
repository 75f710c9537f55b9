"""The free room on nodes. The table is physical: a node of several flavors is counted once."""

from collections.abc import Iterable, Sequence

from scheduling.engine.atlas import Atlas
from scheduling.engine.ground import Footprint, HoleTable
from scheduling.engine.journal import Journal, Trial
from scheduling.engine.scoring.devices import whole_turns
from scheduling.engine.scoring.holes import after, fitting
from scheduling.engine.snapshot import Assignment, PodSet, Workload
from scheduling.engine.usage import is_whole_gpu, paired

Seats = Sequence[tuple[int, ...]]  # the devices of each pod on one node


class FreeCapacity:
    """What is free on each node; negative where a node shrank below what stands on it.

    ``holes`` is the hole of each node by its number; everything else is worked out from it.
    """

    def __init__(self, atlas: Atlas, journal: Journal | None = None) -> None:
        self.ground = atlas.ground
        self.holes = HoleTable(self.ground.empty)
        self._strange: dict[tuple[str, str], int] = {}  # taken of what the node does not have
        self._journal = journal or Journal()

    def trial(self) -> Trial:
        """Open a block whose changes to all tables of this journal are undone unless kept."""
        return self._journal.trial()

    def free(self, node: str, resource: str) -> int:
        """Return how much of it is free on the node; of devices told apart, whole turns."""
        column = self.ground.columns.get(resource)
        if column is None:
            return -self._strange.get((node, resource), 0)
        hole = self.ground.holes[self.holes[self.ground.numbers[node]]]
        if hole.devices and is_whole_gpu(resource):
            return min(hole.amounts[column], whole_turns(hole.spare))
        return hole.amounts[column]

    def fitting(self, node: str, pod_set: PodSet) -> int:
        """Return how many pods of the pod set still fit on the node."""
        pod = self.ground.footprint_of(pod_set)
        hole = self.ground.holes[self.holes[self.ground.numbers[node]]]
        return 0 if pod.strange else fitting(hole, pod.shape)

    def take(self, node: str, pod_set: PodSet, pods: int, seats: Seats = ()) -> None:
        """Put ``pods`` on the node; with a negative number, take them away.

        ``seats``: the devices of each pod, where the node's devices are told apart. A node that
        has left the cluster holds nothing.
        """
        ground = self.ground
        number = ground.numbers.get(node)
        if number is None or not pods:
            return
        pod = ground.footprint_of(pod_set)
        hole = self.holes[number]
        if ground.holes[hole].devices and pod.shape.devices:
            left = self._on_devices(hole, pod, pods, seats)
        else:
            left = ground.step(hole, pod, pods)
        self._journal.write(self.holes, number, left)
        for resource, amount in pod.strange:
            key = node, resource
            self._journal.write(self._strange, key, self._strange.get(key, 0) + amount * pods)

    def _on_devices(self, hole: int, pod: Footprint, pods: int, seats: Seats) -> int:
        """Return the hole that pods on these devices leave.

        Pods of which nobody wrote down the devices take them in turns from the first on: the
        same when they come as when they go.
        """
        ground, shape = self.ground, pod.shape
        count = len(ground.holes[hole].devices)
        taken = [device for seat in seats for device in seat if device < count]
        missing = max(0, abs(pods) - len(seats)) * shape.devices
        taken += [turn % count for turn in range(missing)]
        return ground.number_of(after(ground.holes[hole], shape, taken, pods))

    def stand(self, workload: Workload, assignments: Iterable[Assignment], sign: int = 1) -> None:
        """Put a whole workload where ``assignments`` says; ``sign`` -1 takes it away."""
        placed = [assignment for assignment in assignments if assignment.nodes]
        for pod_set, assignment in paired(workload, placed) if placed else ():
            devices = assignment.devices
            for node, pods in assignment.nodes.items():
                self.take(node, pod_set, sign * pods, devices.get(node, ()) if devices else ())


Rooms = tuple[FreeCapacity, ...]  # pods must fit in each of these
