"""The numbers of the pages."""

from hypothesis import HealthCheck, given, settings

from scheduling.engine.machines import GPU
from scheduling.engine.tree import Kind
from scheduling.engine.view import QuotaRow, quota_rows
from tests.engine.builders import three_teams, world
from tests.engine.simulator import Simulator
from tests.engine.strategies import worlds


def test_the_rows_of_the_three_teams() -> None:
    made = three_teams().running("x", "cq-datos", gpus=3).pending("y", "cq-ia", gpus=2)
    rows = {row.name: row for row in quota_rows(made.build())}
    assert rows["cq-datos"] == QuotaRow(
        Kind.QUEUE, "cq-datos", "llm", "h100-sxm", GPU, nominal=2, used=3, borrowed=1, lent=0,
        idle=0, pending=0, ceiling=4, reachable=4, available=1,
    )  # fmt: skip
    ia, plataforma, cohort = rows["cq-ia"], rows["cq-plataforma"], rows["llm"]
    assert (ia.lent, ia.idle, ia.pending, ia.ceiling, ia.available) == (1, 0, 2, None, 1)
    assert (plataforma.lent, plataforma.idle, plataforma.ceiling) == (0, 1, 4)
    assert (cohort.kind, cohort.nominal, cohort.used, cohort.pending) == (Kind.COHORT, 0, 3, 2)
    assert (cohort.parent, cohort.reachable, cohort.available) == (None, 4, 1)


def test_releasing_work_still_counts() -> None:
    made = world().queue("a", 2, None).running("x", "a", gpus=2, releasing=True)
    (row,) = quota_rows(made.build())
    assert (row.used, row.available, row.ceiling) == (2, 0, 2)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(snapshot=worlds())
def test_every_nominal_unit_is_used_lent_or_idle(snapshot) -> None:
    sim = Simulator(snapshot)
    sim.run()
    for row in quota_rows(sim.snapshot):
        assert min(row.lent, row.idle, row.used, row.borrowed) >= 0
        if row.kind is Kind.QUEUE:
            own = row.used - row.borrowed
            assert own + row.lent + row.idle == row.nominal
        else:
            assert row.lent + row.idle == row.nominal


def test_the_ceiling_of_a_cohort_counts_what_its_queues_never_lend() -> None:
    """A queue of 4 that lends nothing uses all of it: 4 of 6, not 4 of 2."""
    made = world().nodes(2).queue("safe", 4, lend=0).queue("open", 2)
    made.running("r", "safe", gpus=4, on={"h100-node-01": 1})
    row = next(r for r in quota_rows(made.build()) if r.name == "llm")
    assert (row.used, row.ceiling) == (4, 6)
