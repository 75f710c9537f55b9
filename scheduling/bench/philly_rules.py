"""The policies of the published comparison that are no rules of the product, to the second.

Their definition: ``data/philly/README.md`` of the shared folder. Time goes from event to event;
at an instant first work ends, then work comes, then cycles run until one admits nothing. In a
cycle each virtual cluster offers one head.
"""

import heapq
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple


class Job(NamedTuple):
    """One row of the trace."""

    id: int
    cluster: str
    submit_s: int
    duration_s: int
    gpus: int


Key = tuple[int, ...]  # smaller goes first


def by_age(job: Job) -> Key:
    """Return the key of first come, first served."""
    return job.submit_s, job.id


def by_duration(job: Job) -> Key:
    """Return the key of shortest first: an oracle knows it."""
    return job.duration_s, job.submit_s, job.id


@dataclass(frozen=True, slots=True)
class Rules:
    """One policy. ``isolated``: its own nominal quota bounds each cluster; else all GPUs do.

    ``nominal_first``: who would stay within its own quota goes before who would not.
    """

    isolated: bool = False
    strict: bool = False
    nominal_first: bool = True
    key: Callable[[Job], Key] = by_age


Outcome = dict[int, int]  # when each job ended, by id


class _Line:
    """Who waits in one cluster: for each size a heap, the first by key on top."""

    def __init__(self) -> None:
        self._sizes: dict[int, list[tuple[Key, Job]]] = {}

    def add(self, key: Key, job: Job) -> None:
        heapq.heappush(self._sizes.setdefault(job.gpus, []), (key, job))

    def head(self, most: int | None = None) -> Job | None:
        """Return the first of all, or of those that ask for at most so much."""
        tops = [
            heap[0]
            for size, heap in self._sizes.items()
            if heap and (most is None or size <= most)
        ]
        return min(tops, key=itemgetter(0))[1] if tops else None

    def remove(self, job: Job) -> None:
        heapq.heappop(self._sizes[job.gpus])


class _Clusters:
    """What the clusters hold, and who waits in them."""

    def __init__(self, rules: Rules, nominal: Mapping[str, int]) -> None:
        self._rules, self._nominal = rules, nominal
        self._used = dict.fromkeys(nominal, 0)
        self._free = sum(nominal.values())
        self._lines = {name: _Line() for name in nominal}

    def come(self, job: Job) -> None:
        self._lines[job.cluster].add(self._rules.key(job), job)

    def hold(self, job: Job, sign: int = 1) -> None:
        self._used[job.cluster] += sign * job.gpus
        self._free -= sign * job.gpus

    def _room(self, cluster: str) -> int:
        if self._rules.isolated:
            return self._nominal[cluster] - self._used[cluster]
        return self._free

    def _heads(self) -> list[Job]:
        heads = []
        for cluster, line in self._lines.items():
            head = line.head(None if self._rules.strict else self._room(cluster))
            if head is not None:
                heads.append(head)
        return sorted(heads, key=self._order)

    def _order(self, job: Job) -> tuple[bool, Key]:
        over = self._used[job.cluster] + job.gpus > self._nominal[job.cluster]
        return over and self._rules.nominal_first and not self._rules.isolated, self._rules.key(
            job
        )

    def cycle(self) -> list[Job]:
        """Return who is admitted in one cycle."""
        admitted = []
        for job in self._heads():
            if job.gpus <= self._room(job.cluster):
                self._lines[job.cluster].remove(job)
                self.hold(job)
                admitted.append(job)
        return admitted


def run(jobs: Sequence[Job], nominal: Mapping[str, int], rules: Rules) -> Outcome:
    """Return when each job ends; ``jobs`` in the order of their submission."""
    clusters = _Clusters(rules, nominal)
    ends: list[tuple[int, int, Job]] = []
    ended: Outcome = {}
    for now, coming in _instants(jobs, ends):
        while ends and ends[0][0] <= now:
            _, _, job = heapq.heappop(ends)
            clusters.hold(job, -1)
            ended[job.id] = now
        for job in coming:
            clusters.come(job)
        while admitted := clusters.cycle():
            for job in admitted:
                heapq.heappush(ends, (now + job.duration_s, job.id, job))
    return ended


def _instants(
    jobs: Sequence[Job], ends: list[tuple[int, int, Job]]
) -> Iterable[tuple[int, list[Job]]]:
    """Yield each instant with those who come then; ``ends`` grows and shrinks meanwhile."""
    place = 0
    while place < len(jobs) or ends:
        due = [ends[0][0]] if ends else []
        now = min([*due, jobs[place].submit_s] if place < len(jobs) else due)
        first = place
        while place < len(jobs) and jobs[place].submit_s <= now:
            place += 1
        yield now, list(jobs[first:place])


def shortest_remaining(jobs: Sequence[Job], nominal: Mapping[str, int]) -> Outcome:
    """Return when each job ends where the shortest remaining time runs: free preemption.

    Clusters are isolated, so each is played by itself. Between its events only those who run get
    nearer to their end, which changes nobody's turn.
    """
    ended: Outcome = {}
    for cluster, gpus in nominal.items():
        ended |= _Oracle(gpus).run([job for job in jobs if job.cluster == cluster])
    return ended


Left = tuple[int, int, int]  # remaining, submitted, id


class _Oracle:
    """One isolated cluster that always runs the shortest remaining work, greedily."""

    def __init__(self, gpus: int) -> None:
        self._gpus = gpus
        self._waiting: list[Left] = []
        self._ends: dict[int, int] = {}  # of those who run

    def run(self, jobs: Sequence[Job]) -> Outcome:
        ended: Outcome = {}
        known = {job.id: job for job in jobs}
        place = 0
        while place < len(jobs) or self._ends:
            due = min(self._ends.values(), default=None)
            now = jobs[place].submit_s if place < len(jobs) else due
            assert now is not None
            now = now if due is None else min(now, due)
            for one in [one for one, end in self._ends.items() if end <= now]:
                ended[one] = self._ends.pop(one)
            while place < len(jobs) and jobs[place].submit_s <= now:
                job = jobs[place]
                insort(self._waiting, (job.duration_s, job.submit_s, job.id))
                place += 1
            self._choose(now, known)
        return ended

    def _choose(self, now: int, known: Mapping[int, Job]) -> None:
        runs = sorted((end - now, known[one].submit_s, one) for one, end in self._ends.items())
        free, ends = self._gpus, dict[int, int]()
        stays: set[Left] = set()
        for left in heapq.merge(runs, self._waiting):
            if not free:
                break
            if known[left[2]].gpus <= free:
                free -= known[left[2]].gpus
                ends[left[2]] = now + left[0]
                stays.add(left)
        for left in [one for one in runs if one not in stays]:
            insort(self._waiting, left)
        started = stays.difference(runs)
        if started:
            self._waiting = [left for left in self._waiting if left not in started]
        self._ends = ends
