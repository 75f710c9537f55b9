"""61 days of a real cluster: published policies to the second, and the product's own profile.

What the engine can be told by a site is decided by it; what is no rule of the product lives in
:mod:`scheduling.bench.philly_rules`. Data: ``data/philly/README.md`` of the shared folder.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from scheduling.bench.philly_rules import Job, Rules, by_duration, run, shortest_remaining
from scheduling.bench.report import Figure, Goal, Report
from scheduling.engine.snapshot import Snapshot
from scheduling.replay.figures import PERCENTILES, Figures, figures_of, percentile
from scheduling.replay.player import Heed, play
from scheduling.replay.policies import policy
from scheduling.replay.trace import Trace

WEEK_S = 691_200, 1_296_000  # submitted from, and before
PARTS = ("exact", "recommended", "declared", "best-effort")
ENGINE_S = 20.0  # 61 days
FLOORS = {"mean": 7_000.0, ">8": 60_000.0, "5-8": 110_000.0}
GOALS = {"mean": 6_300.0, ">8": 60_000.0, "5-8": 60_000.0}
BY_ENGINE = {
    "isolated strict FIFO": "isolated+strict+quota-only",
    "isolated best-effort FIFO": "isolated+best-effort+quota-only",
}
BY_RULES = {
    "isolated SJF (oracle)": Rules(isolated=True, strict=True, key=by_duration),
    "cohort strict FIFO, borrowing": Rules(strict=True),
    "cohort best-effort FIFO, borrowing": Rules(),
    "cohort best-effort SJF": Rules(key=by_duration),
    "pooled strict FIFO": Rules(strict=True, nominal_first=False),
}
SMALLEST = 9  # GPUs of a gang for which room is kept: more than a node has
PREEMPTIVE = "isolated SRTF (oracle, preemptive)"
OURS = {
    "recommended": "as-given",
    "declared": "durations-declared",
    "best-effort": "no-reservation",
}


@dataclass(frozen=True, slots=True)
class Data:
    """The cluster, the trace, and what others found: by cut the figures of each policy."""

    site: Snapshot
    trace: Trace
    reference: Mapping[str, Sequence[Mapping[str, Any]]]

    def cut(self, name: str) -> "Data":
        """Return the data of one cut: ``full`` or ``week``."""
        if name == "full":
            return self
        first, end = WEEK_S
        kept = (a for a in self.trace.arrivals if first <= a.workload.created_at < end)
        return replace(self, trace=Trace(name, tuple(kept)))


@dataclass(frozen=True, slots=True)
class Found:
    """The waits of one policy, in seconds: mean and percentiles; and what it cost."""

    mean_s: float
    percentiles: tuple[float, ...]
    cpu_s: float

    def differs_from(self, published: Mapping[str, Any]) -> int:
        """Return how many figures are not the published ones, which are cut to whole seconds."""
        pairs = [(round(self.mean_s, 1), published["mean_wait_s"])]
        ours = zip(self.percentiles, PERCENTILES, strict=True)
        pairs += [(int(value), published[f"p{percent}"]) for value, percent in ours]
        return sum(one != other for one, other in pairs)


def _nobody_heeds(_come: int, _of: int) -> None:
    return


def bench(
    data: Data, cut: str, parts: Collection[str] = PARTS, heed: Heed = _nobody_heeds
) -> Report:
    """Replay the trace under every policy of the chosen parts.

    Raises:
        AssertionError: work was lost, or a cluster held more than it has.
    """
    part = data.cut(cut)
    work: dict[str, Figure] = {"jobs": len(part.trace.arrivals)}
    goals: list[Goal] = []
    seconds: list[float] = []
    if "exact" in parts:
        for name, found in exact(part, heed).items():
            published = next(one for one in part.reference[cut] if one["policy"] == name)
            goals.append(Goal(f"{name}: figures that differ", found.differs_from(published), 0))
            work |= _told(name, found)
            if name in BY_ENGINE:
                seconds.append(found.cpu_s)
        if cut == "full":
            goals.append(Goal("s-engine-61-days", max(seconds), ENGINE_S))
    for name in [name for name in PARTS if name in parts and name in OURS]:
        figures, cpu_s = replayed(part, OURS[name], heed)
        seconds.append(cpu_s)
        work |= _all_told(name, figures, cpu_s)
        if name == "recommended" and cut == "full":
            goals += _goals(figures)
    env: dict[str, Figure] = {"profile": "recommended", "policy": "fragmentation", "cut": cut}
    env |= {"RESERVATION_MIN_GPUS": SMALLEST, "database": "none", "broker": "none"}
    return Report("philly", env, work, seconds, goals)


def exact(data: Data, heed: Heed = _nobody_heeds) -> dict[str, Found]:
    """Return what each published policy gives here."""
    return {**{name: by_engine(data, name, heed) for name in BY_ENGINE}, **by_rules(data)}


def by_engine(data: Data, name: str, heed: Heed = _nobody_heeds) -> Found:
    """Return what a published policy gives that the engine can be told by a site."""
    figures, cpu_s = replayed(data, BY_ENGINE[name], heed)
    waits = figures.waits
    return Found(waits.mean_s, (waits.p50_s, waits.p90_s, waits.p99_s), cpu_s)


def by_rules(data: Data) -> dict[str, Found]:
    """Return what the published policies give that are no rules of the product."""
    nominal = {
        name: sum(quota.nominal for quota in queue.quotas.values())
        for name, queue in data.site.cluster_queues.items()
    }
    found = {
        name: _timed(data, partial(run, rules=rules), nominal) for name, rules in BY_RULES.items()
    }
    return {**found, PREEMPTIVE: _timed(data, shortest_remaining, nominal)}


def jobs_of(trace: Trace) -> list[Job]:
    """Return a trace in the shape of the rules that are not the product's."""
    from_trace = (
        (number, one.workload.queue or "", one.workload.created_at, one.runs_s, one.gpus)
        for number, one in enumerate(trace.arrivals)
    )
    return [Job(i, queue, int(at), int(runs), gpus) for i, queue, at, runs, gpus in from_trace]


def _timed(
    data: Data,
    rules: Callable[[list[Job], Mapping[str, int]], Mapping[int, int]],
    nominal: Mapping[str, int],
) -> Found:
    jobs = jobs_of(data.trace)
    started = time.process_time()
    ended = rules(jobs, nominal)
    cpu_s = time.process_time() - started
    waited = sorted(ended[job.id] - job.submit_s - job.duration_s for job in jobs)
    places = tuple(percentile(waited, percent) for percent in PERCENTILES)
    return Found(sum(waited) / len(waited), places, cpu_s)


def replayed(data: Data, name: str, heed: Heed = _nobody_heeds) -> tuple[Figures, float]:
    """Return the figures of one policy of the product, and the CPU seconds that they took."""
    ours, patience = policy(name), replace(data.site.patience, minimum=SMALLEST)
    site, trace = ours.site(replace(data.site, patience=patience)), ours.trace(data.trace)
    started = time.process_time()
    tape = play(site, trace, heed=heed)
    cpu_s = time.process_time() - started
    assert not tape.unfinished, f"{len(tape.unfinished)} never ran"
    return figures_of(name, site, tape), cpu_s


def _goals(figures: Figures) -> list[Goal]:
    found = {"mean": figures.waits.mean_s}
    found |= {size: figures.by_size[size].mean_s for size in (">8", "5-8")}
    floors = [Goal(f"wait-{name}-floor", found[name], limit) for name, limit in FLOORS.items()]
    return floors + [Goal(f"wait-{name}", found[name], limit) for name, limit in GOALS.items()]


def _told(name: str, found: Found) -> dict[str, Figure]:
    told: dict[str, Figure] = {f"{name}: mean wait s": round(found.mean_s, 1)}
    for percent, value in zip(PERCENTILES, found.percentiles, strict=True):
        told[f"{name}: p{percent} s"] = int(value)
    return {**told, f"{name}: CPU s": round(found.cpu_s, 1)}


def _all_told(name: str, figures: Figures, cpu_s: float) -> dict[str, Figure]:
    waits = figures.waits
    found = Found(waits.mean_s, (waits.p50_s, waits.p90_s, waits.p99_s), cpu_s)
    told = _told(name, found)
    for size, of in figures.by_size.items():
        told[f"{name}: mean wait s, {size} GPUs"] = round(of.mean_s)
    told[f"{name}: utilisation while work comes"] = figures.utilisation_while_coming or 0.0
    told[f"{name}: borrowed GPU-hours"] = round(figures.use.borrowed_gpu_hours)
    told[f"{name}: GPU-hours held idle for gangs"] = round(figures.held_idle_gpu_hours)
    return told
