"""What a replay says in one sentence: what came out, of work that can be compared."""

import pytest

from finops.models import QuotaReplay
from finops.replay_charts import sentence

REST = "the rest would have waited"


def replay(before, after, never=(0, 0)):
    sides = {"before": (before, never[0]), "after": (after, never[1])}
    result = {
        side: {"waits": {"mean_s": mean}, "unfinished": count}
        for side, (mean, count) in sides.items()
    }
    return QuotaReplay(result=result)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (replay(3600, 7200), "Work would have waited 2 h 0 min on average, not 1 h 0 min"),
        (replay(3600, 3600), "Work would have waited 1 h 0 min on average either way"),
        (
            replay(3600, 7200, (0, 28)),
            f"Of the work 28 could never start, not 0; {REST} 2 h 0 min on average",
        ),
        (
            replay(3600, 3600, (3, 0)),
            f"Of the work 0 could never start, not 3; {REST} 1 h 0 min on average",
        ),
    ],
)
def test_work_that_can_no_longer_start_is_told_before_any_mean(row, said):
    assert sentence(row) == said
