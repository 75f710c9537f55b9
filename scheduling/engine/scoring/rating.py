"""What each hole is worth to one kind of pod, worked out once for all nodes that look alike."""

from scheduling.engine.ground import Footprint, Ground
from scheduling.engine.memo import Memo
from scheduling.engine.scoring.holes import after, fitting
from scheduling.engine.scoring.policies import Policy


class Rating:
    """Holes in the eyes of one kind of pod and one policy.

    ``fits[hole]`` is how many of these pods fit together, ``demerits[hole]`` how bad a place it
    is for one of them; ask that only of holes in which one fits.
    """

    def __init__(self, ground: Ground, pod: Footprint, policy: Policy) -> None:
        self._ground, self._pod, self._policy = ground, pod, policy
        shape, strange = pod.shape, bool(pod.strange)
        known = ground.holes
        self.fits = Memo[int, int](lambda hole: 0 if strange else fitting(known[hole], shape))
        self.demerits = Memo[int, int](lambda hole: -self._policy(known[hole], shape).merit)

    def rate_by(self, policy: Policy) -> None:
        """Let another policy say how good a place is."""
        self._policy = policy
        self.demerits.clear()

    def after_one(self, hole: int) -> int:
        """Return the hole that one more pod leaves, on the devices that the policy takes."""
        ground, shape = self._ground, self._pod.shape
        free = ground.holes[hole]
        if not (free.devices and shape.devices):
            return ground.step(hole, self._pod, 1)
        return ground.number_of(after(free, shape, self._policy(free, shape).devices))

    def seats(self, hole: int, pods: int) -> tuple[tuple[int, ...], ...]:
        """Return the devices of each of so many pods; none where devices are counted."""
        free, shape = self._ground.holes[hole], self._pod.shape
        if not (free.devices and shape.devices):
            return ()
        found: list[tuple[int, ...]] = []
        for _ in range(pods):
            found.append(self._policy(free, shape).devices)
            free = after(free, shape, found[-1])
        return tuple(found)
