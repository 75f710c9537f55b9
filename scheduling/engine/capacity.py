"""The free room on nodes. The table is physical: a node of several flavors is counted once."""

from collections.abc import Iterable, Mapping, Sequence

from scheduling.engine.atlas import Atlas
from scheduling.engine.ground import Footprint
from scheduling.engine.journal import Journal, Trial
from scheduling.engine.scoring.devices import Spare, whole_turns
from scheduling.engine.scoring.holes import after, fitting
from scheduling.engine.snapshot import Assignment, PodSet, Workload
from scheduling.engine.tables import HoleTable
from scheduling.engine.usage import is_whole_gpu, paired

Seats = Sequence[tuple[int, ...]]  # the devices of each pod on one node
NO_DEVICES: Mapping[str, Seats] = {}


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

    def spare(self, node: str) -> Spare:
        """Return what is free on the node's devices; on none where they are not told apart."""
        return self.ground.holes[self.holes[self.ground.numbers[node]]].spare

    def fitting(self, node: str, pod_set: PodSet) -> int:
        """Return how many pods of the pod set still fit on the node."""
        pod = self.ground.footprint_of(pod_set)
        hole = self.ground.holes[self.holes[self.ground.numbers[node]]]
        return 0 if pod.strange else fitting(hole, pod.shape)

    def bears(self, node: str, pod_set: PodSet, pods: int, seats: Seats = ()) -> bool:
        """Return whether so many pods fit on the node, and on exactly these devices of it."""
        if self.fitting(node, pod_set) < pods:
            return False
        pod, hole = self.ground.footprint_of(pod_set), self.holes[self.ground.numbers[node]]
        spare = self.spare(node)
        if not spare.free or not pod.shape.devices:
            return True
        if len(seats) != pods or any(d >= len(spare.free) for seat in seats for d in seat):
            return False
        left = self.ground.holes[self._on_devices(hole, pod, pods, seats)]
        taken = {device for seat in seats for device in seat}
        return all(
            left.devices[device] >= 0 and (not left.memory or left.memory[device] >= 0)
            for device in taken
        )

    def take(self, node: str, pod_set: PodSet, pods: int, seats: Seats = ()) -> None:
        """Put ``pods`` on the node; with a negative number, take them away.

        ``seats``: the devices of each pod, where the node's devices are told apart. A node that
        has left the cluster holds nothing.
        """
        self.take_all(pod_set, {node: pods}, 1, {node: seats})

    def take_all(
        self,
        pod_set: PodSet,
        nodes: Mapping[str, int],
        sign: int = 1,
        devices: Mapping[str, Seats] = NO_DEVICES,
    ) -> None:
        """Put pods of one pod set on several nodes; ``sign`` -1 takes them away."""
        ground, holes, steps = self.ground, self.holes, self.ground.steps
        pod, known = ground.footprint_of(pod_set), ground.numbers
        told_apart, kind = pod.shape.devices and ground.tells_apart, pod.number
        left: dict[int, int] = {}
        for node, pods in nodes.items():
            number = known.get(node)
            if number is None or not pods:
                continue
            if told_apart:
                left[number] = self._left(number, pod, sign * pods, devices.get(node, ()))
            else:
                left[number] = steps[holes[number], kind, sign * pods]
            if pod.strange:
                self._take_strange(node, pod, sign * pods)
        self._journal.write_all(holes, left)

    def _take_strange(self, node: str, pod: Footprint, pods: int) -> None:
        """Note what pods take that the node does not have."""
        for resource, amount in pod.strange:
            key = node, resource
            taken = self._strange.get(key, 0) + amount * pods
            self._journal.write(self._strange, key, taken)

    def _left(self, number: int, pod: Footprint, pods: int, seats: Seats) -> int:
        """Return the hole that pods leave on a node; ``seats``: their devices, told apart."""
        hole = self.holes[number]
        if self.ground.holes[hole].devices:
            return self._on_devices(hole, pod, pods, seats)
        return self.ground.step(hole, pod, pods)

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
            self.take_all(pod_set, assignment.nodes, sign, assignment.devices)


Rooms = tuple[FreeCapacity, ...]  # pods must fit in each of these
