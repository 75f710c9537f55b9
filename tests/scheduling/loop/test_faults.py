"""Processes that die or race: nothing half done, nothing done twice, and work goes on."""

import pytest

from tests.scheduling.loop.conftest import answer
from tests.scheduling.loop.world import nodes, queue, work

LOOK = """
def look():
    return {
        "status": sorted(Workload.objects.values_list("status", flat=True)),
        "admissions": Admission.objects.count(),
        "placed": sum(Placement.objects.values_list("count", flat=True)),
        "metered": sum(UsageInterval.objects.values_list("amount", flat=True)),
        "events": WorkloadEvent.objects.filter(kind="admitted").count(),
        "cycles": Cycle.objects.count(),
    }
"""
UNTOUCHED = {
    "status": ["pending"],
    "admissions": 0,
    "placed": 0,
    "metered": 0,
    "events": 0,
    "cycles": 0,
}
ADMITTED = {
    "status": ["admitted"],
    "admissions": 1,
    "placed": 2,
    "metered": 8,
    "events": 1,
    "cycles": 1,
}
DIES_AFTER = """
module, name = {module}, "{name}"
whole = getattr(module, name)
def dies(*args, **kwargs):
    whole(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(module, name, dies)
cycle.run_cycle("victim")
"""
GO_ON = """
left, before = Lease.objects.get(), look()
while not cycle.run_cycle().ran:
    assert timezone.now() < left.until + timedelta(seconds=1)
    time.sleep(0.05)
print(json.dumps([left.holder, left.fence, before, look()]))
"""


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("cycle", "decide_soundly"),
        ("applier.moves", "take"),
        ("cycle", "record"),
    ],
)
def test_a_worker_that_is_killed_leaves_nothing_and_the_next_goes_on(elsewhere, module, name):
    nodes(2)
    queue("datos", 8)
    work("datos", "gang", pods=2, gpus=4)
    victim = elsewhere(DIES_AFTER.format(module=module, name=name))
    victim.communicate(timeout=60)
    assert victim.returncode == -9
    assert answer(elsewhere(LOOK + GO_ON)) == ["victim", 1, UNTOUCHED, ADMITTED]


def test_two_workers_at_once_admit_nobody_twice(elsewhere):
    nodes(4)
    queue("datos", 16)
    for number in range(8):
        work("datos", f"gang{number}", pods=1, gpus=2)
    program = """
admitted = []
for _ in range(12):
    report = cycle.run_cycle()
    admitted.append(report.admitted)
    reconciler.reconcile()
print(json.dumps(sum(admitted)))
"""
    workers = [elsewhere(program) for _ in range(2)]
    assert sum(answer(worker) for worker in workers) == 8
    look = answer(elsewhere(LOOK + "print(json.dumps(look()))"))
    assert (look["status"], look["admissions"]) == (["running"] * 8, 8)
    assert (look["placed"], look["metered"], look["events"]) == (8, 16, 8)
