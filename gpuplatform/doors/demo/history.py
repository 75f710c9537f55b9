"""What was submitted when: the articles' June, sixty days of six teams, and the last hours."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

SEED = 20_260_601
JUNE = datetime(2026, 6, 1, tzinfo=UTC)
DAYS = 60


@dataclass(frozen=True, slots=True)
class Job:
    """A workload of the demo: ``pods`` x ``gpus`` for ``hours``, submitted at ``at``."""

    at: datetime
    team: str
    name: str
    pods: int
    gpus: int
    hours: float
    priority: str = ""
    pool: str = ""  # "h100" or "a100": which nodes it wants; "" takes the queue's first choice
    level: str = ""  # "rack" or "block"
    mode: str = "required"


def june() -> Iterator[Job]:
    """Yield the articles' month: 1,080 GPU-hours of Datos, 432 of IA, 252 of Plataforma.

    Datos serves its 70B model on 4 GPUs although it owns 2, so half of its hours are borrowed;
    IA and Plataforma come when Datos is done (``finops.md`` 2.9, point 10).
    """
    free = JUNE + timedelta(hours=270)
    for index in range(3):
        yield Job(JUNE, "datos", f"llama-70b-batch-{index + 1}", 1, 4, 90)
    for index in range(3):
        at = free + timedelta(hours=144 * index)
        yield Job(at, "ia", f"eval-13b-{index + 1}", 1, 1, 144)
    for index in range(3):
        at = free + timedelta(hours=84 * index)
        yield Job(at, "plataforma", f"guardrails-{index + 1}", 1, 1, 84)


@dataclass(frozen=True, slots=True)
class Habit:
    """How a team works: names of its jobs, their usual sizes, jobs a week."""

    names: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]  # (pods, GPUs each)
    weekly: int
    pool: str = "h100"


HABITS = {
    "vision": Habit(("vit-sweep", "segment", "video-pretrain"), ((1, 8), (4, 8), (8, 8)), 7),
    "speech": Habit(("asr-train", "tts-voices"), ((1, 4), (2, 8), (4, 8)), 6),
    "bio": Habit(("fold", "docking"), ((1, 2), (2, 8), (4, 8)), 5),
    "search": Habit(("ranker", "dense-index"), ((1, 8), (4, 8), (8, 8)), 6),
    "recsys": Habit(("two-tower", "embeddings"), ((1, 4), (2, 8), (4, 8)), 6),
    "robotics": Habit(("sim2real", "policy"), ((1, 4), (2, 8), (4, 8)), 5, "a100"),
}
HOURS = (6, 12, 24, 36, 48, 72, 96)
PRIORITIES = ("research", "standard", "standard", "production")


def sixty_days(now: datetime) -> Iterator[Job]:
    """Yield some hundred jobs of six teams, the last of them over eight hours before ``now``."""
    dice = random.Random(SEED)  # noqa: S311 - a fixed seed is the point
    quiet = now - timedelta(hours=8)
    for team, habit in HABITS.items():
        for index in range(habit.weekly * DAYS // 7):
            at = now - timedelta(hours=dice.uniform(12, DAYS * 24))
            pods, gpus = dice.choice(habit.sizes)
            hours = min(dice.choice(HOURS), (quiet - at).total_seconds() / 3600)
            yield Job(
                at.replace(microsecond=0),
                team,
                f"{dice.choice(habit.names)}-{index + 1:03d}",
                pods,
                gpus,
                round(hours, 2),
                dice.choice(PRIORITIES),
                habit.pool,
            )


def last_hours(now: datetime) -> Iterator[Job]:
    """Yield what stands and waits now: gangs, loans, a reclaim, a waiting gang."""

    def ago(minutes: float) -> datetime:
        return (now - timedelta(minutes=minutes)).replace(microsecond=0)

    yield Job(ago(400), "vision", "vit-22b-pretrain", 12, 8, 40, "standard", "h100", "block")
    yield Job(ago(390), "speech", "asr-conformer-xl", 8, 8, 30, "standard", "h100")
    yield Job(ago(380), "recsys", "two-tower-weekly", 5, 8, 26, "standard", "h100")
    yield Job(ago(370), "bio", "fold-train", 4, 8, 52, "standard", "h100", "rack")
    yield Job(ago(360), "vision", "seg-ablation", 4, 8, 20, "research", "h100")
    yield Job(ago(350), "speech", "tts-sweep", 2, 8, 18, "research", "h100")
    yield Job(ago(330), "search", "ranker-eval", 2, 8, 9, "standard", "h100")
    yield Job(ago(300), "bio", "docking-screen", 3, 8, 24, "research", "h100")
    yield Job(ago(290), "robotics", "policy-train", 5, 8, 16, "standard", "a100")
    yield Job(ago(280), "bio", "md-relax", 2, 8, 11, "standard", "a100")
    yield Job(ago(240), "datos", "rag-rerank", 1, 3, 30)
    yield Job(ago(230), "ia", "eval-13b-nightly", 1, 1, 20)
    # Search takes back what it lent: research work of others is evicted for it.
    yield Job(ago(45), "search", "index-rebuild", 10, 8, 14, "production", "h100")
    # These wait: one for a rack, one behind its own limit, one for nodes.
    yield Job(ago(40), "recsys", "embeddings-refresh", 3, 8, 4, "standard", "h100", "rack")
    yield Job(ago(35), "vision", "video-eval", 5, 8, 3, "research", "h100")
    yield Job(ago(30), "robotics", "sim2real-xl", 12, 8, 20, "standard", "a100", "block")
    for index in range(6):  # short work, so that something ends while one looks
        yield Job(ago(6 - index), "bio", f"relax-{index + 1}", 1, 1, 0.12 + index / 20, "", "a100")
