"""From waiting to running and back: the loop on small worlds."""

from datetime import timedelta
from functools import partial
from io import StringIO
from threading import Thread

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F
from django.utils import timezone

from gpuplatform.common.models import Change, Lease
from gpuplatform.common.wakeup import request_cycle
from queues.models import ClusterQueue, LocalQueue
from scheduling import cycle, lifecycle, tasks
from scheduling.cycle import run_cycle
from scheduling.engine.machines import GPU
from scheduling.engine.plan import Admit
from scheduling.engine.quarantine import decide_soundly
from scheduling.engine.terms import Status
from scheduling.models import Admission, Cycle, Node, Placement, UsageInterval, Workload
from scheduling.reconciler import reconcile
from scheduling.worker import Worker
from tests.scheduling.loop.world import NOON, RECLAIMS, nodes, queue, status, story, usage, work

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def three_teams(clock):
    """Datos may borrow from IA and Plataforma, and both take back what is theirs."""
    nodes(1)
    queue("datos", 2, cohort="llm", borrowing_limit=2, **RECLAIMS)
    queue("ia", 1, cohort="llm", lending_limit=1, **RECLAIMS)
    queue("plataforma", 1, cohort="llm", borrowing_limit=3, **RECLAIMS)
    return clock


def test_a_gang_of_eight_is_placed_whole(clock):
    nodes(8)
    queue("datos", 32)
    gang = work("datos", "train", pods=8, gpus=4)
    report = run_cycle()
    assert (report.admitted, report.held, report.lines) == (
        1,
        0,
        ("admitted ns-datos/train (8x4 GPUs) on h100-node-01..08",),
    )
    assert (status(gang), gang.admitted_at, gang.position) == (Status.ADMITTED, NOON, None)
    placed = Placement.objects.order_by("node").values_list("node", "count", "requests")
    assert [*placed] == [(f"h100-node-0{n}", 1, {GPU: 4}) for n in range(1, 9)]
    assert usage(gang) == [("nominal", "", 32, NOON, None)]
    assert reconcile().started == 1
    assert story(gang) == ["admitted", "started"]


def test_with_one_node_cordoned_nothing_is_held_and_the_reason_names_28_of_32(clock):
    nodes(8)
    Node.objects.filter(name="h100-node-05").update(schedulable=False)
    queue("datos", 32)
    gang = work("datos", "train", pods=8, gpus=4)
    report = run_cycle()
    assert (report.admitted, report.held) == (0, 1)
    assert (status(gang), gang.position) == (Status.PENDING, 1)
    (blocker, *_) = gang.blockers
    assert (blocker["code"], blocker["needed"], blocker["available"]) == ("GANG_NO_FIT", 32, 28)
    assert not Admission.objects.exists()
    assert not UsageInterval.objects.exists()


def test_a_hold_that_says_something_else_is_written_without_a_new_version(clock):
    queue("datos", 2)
    nodes(1)
    Node.objects.update(schedulable=False)
    gang = work("datos", "big", gpus=2)
    run_cycle()
    version = Workload.objects.get().version
    Workload.objects.update(position=7)
    run_cycle()
    assert (status(gang), gang.position, gang.version) == (Status.PENDING, 1, version)


def test_the_owner_gets_its_quota_back_and_the_borrower_its_turn(three_teams):
    own = work("datos", "own", gpus=2)
    run_cycle()
    three_teams.shift(HOUR)
    borrower = work("datos", "borrower", gpus=2)
    assert run_cycle().lines == (
        "admitted ns-datos/borrower (1x2 GPUs) on h100-node-01, 2 borrowed",
    )
    reconcile()
    assert [row[:4] for row in usage(borrower)] == [
        ("borrowed", "cq-ia", 1, NOON + HOUR),
        ("borrowed", "cq-plataforma", 1, NOON + HOUR),
    ]
    three_teams.shift(HOUR)
    owner = work("plataforma", "serve", gpus=1, priority=10, expected_duration_s=1800)
    report = run_cycle()
    assert (report.admitted, report.evicted) == (0, 1)
    assert status(owner) is Status.PENDING
    assert owner.pending_reason == "WaitingForPreemptedWorkloads"
    assert (status(borrower), borrower.admitted_at) == (Status.PENDING, None)
    evicted = borrower.events.get(kind="evicted")
    assert (evicted.reason, evicted.other, evicted.facts) == (
        "Preempted",
        owner,
        {"gpus": 2, "right": "InCohortReclamation", "lost_gpu_hours": 2.0},
    )
    assert reconcile().released == 1
    assert run_cycle().lines == ("admitted ns-plataforma/serve (1x1 GPUs) on h100-node-01",)
    reconcile()
    assert status(owner) is Status.RUNNING
    assert status(borrower) is Status.PENDING
    three_teams.shift(HOUR)
    assert reconcile().released == 1
    assert status(owner) is Status.FINISHED
    assert run_cycle().admitted == 1
    ended, again = NOON + 2.5 * HOUR, NOON + 3 * HOUR
    assert usage(owner) == [("nominal", "", 1, NOON + 2 * HOUR, ended)]
    assert usage(own) == [("nominal", "", 2, NOON, None)]
    assert [row[1:] for row in usage(borrower)] == [
        ("cq-ia", 1, NOON + HOUR, NOON + 2 * HOUR),
        ("cq-plataforma", 1, NOON + HOUR, NOON + 2 * HOUR),
        ("cq-ia", 1, again, None),
        ("cq-plataforma", 1, again, None),
    ]
    assert story(borrower) == [
        *("admitted", "loan_opened", "started", "evicted", "requeued"),
        *("loan_closed", "admitted", "loan_opened"),
    ]
    assert story(owner) == ["preempting", "admitted", "started", "finished"]


def test_an_end_that_is_noticed_late_is_metered_when_it_happened(three_teams):
    first = work("datos", "first", gpus=2, expected_duration_s=600)
    second = work("datos", "second", gpus=1)
    run_cycle()
    reconcile()
    assert [row[:3] for row in usage(second)] == [("borrowed", "cq-ia", 1)]
    three_teams.shift(HOUR)
    late = work("datos", "late", gpus=1)
    run_cycle()  # before anybody has looked at the cluster
    reconcile()
    over = NOON + timedelta(minutes=10)
    assert usage(first) == [("nominal", "", 2, NOON, over)]
    assert usage(second) == [
        ("borrowed", "cq-ia", 1, NOON, over),
        ("nominal", "", 1, over, None),
    ]
    assert usage(late) == [("nominal", "", 1, NOON + HOUR, None)]
    first.refresh_from_db()
    assert first.finished_at == over


def test_cancelled_work_holds_its_nodes_until_the_cluster_has_released_them(three_teams):
    gang = work("datos", "gang", gpus=4)
    run_cycle()
    reconcile()
    three_teams.shift(HOUR)
    other = work("ia", "other", gpus=1)
    gang.refresh_from_db()
    assert lifecycle.cancel(gang, at=NOON + HOUR)
    three_teams.shift(timedelta(seconds=1))
    assert run_cycle().admitted == 0
    reconcile()
    assert run_cycle().admitted == 1
    assert {row[4] for row in usage(gang)} == {NOON + HOUR}
    assert status(other) is Status.ADMITTED


def test_looking_again_changes_nothing(three_teams):
    gang = work("datos", "gang", gpus=4, expected_duration_s=60)
    run_cycle()
    three_teams.shift(HOUR)
    assert reconcile().moved
    before = story(gang), usage(gang)
    assert not reconcile().moved
    assert (story(gang), usage(gang)) == before


def test_a_gang_that_loses_a_node_leaves_whole_after_its_grace_and_waits_again(clock):
    nodes(2)
    queue("datos", 8)
    gang = work("datos", "gang", pods=2, gpus=4)
    run_cycle()
    reconcile()
    Node.objects.filter(name="h100-node-02").delete()
    clock.shift(HOUR)
    assert reconcile().broken == 1
    assert not reconcile().moved
    report = run_cycle()
    assert (report.evicted, status(gang)) == (0, Status.RUNNING)
    assert report.look_again_at == NOON + HOUR + timedelta(seconds=60)
    clock.shift(timedelta(seconds=60))
    assert (run_cycle().evicted, status(gang)) == (1, Status.PENDING)
    assert reconcile().released == 1
    assert (run_cycle().held, status(gang)) == (1, Status.PENDING)
    assert gang.events.get(kind="evicted").reason == "NodeFailures"
    assert gang.events.get(kind="members_lost").facts == {"lost": ["h100-node-02"]}
    gone_at = NOON + HOUR + timedelta(seconds=60)
    assert usage(gang) == [  # nobody pays for pods that have gone, though their quota is held
        ("nominal", "", 8, NOON, NOON + HOUR),
        ("nominal", "", 4, NOON + HOUR, gone_at),
    ]
    assert not reconcile().moved


def test_a_gang_that_lost_a_node_goes_on_elsewhere(clock):
    nodes(3)
    queue("datos", 12)
    gang, other = work("datos", "gang", pods=2, gpus=4), work("datos", "other", gpus=4)
    run_cycle()
    reconcile()
    Node.objects.filter(name="h100-node-02").delete()
    work("datos", "older", gpus=4, created_at=NOON - HOUR)
    other.delete()
    clock.shift(HOUR)
    reconcile()
    report = run_cycle()
    assert (report.resized, report.evicted) == (1, 0)
    assert status(gang) == Status.RUNNING
    stands = Placement.objects.filter(admission__workload=gang).values_list("node", flat=True)
    assert sorted(stands) == ["h100-node-01", "h100-node-03"]
    assert not reconcile().moved


def test_a_gang_whose_node_comes_back_in_time_runs_on(clock):
    nodes(2)
    queue("datos", 8)
    gang = work("datos", "gang", pods=2, gpus=4)
    run_cycle()
    reconcile()
    lost = Node.objects.get(name="h100-node-02")
    lost.delete()
    run_cycle()
    late = work("datos", "late", gpus=4)
    clock.shift(timedelta(seconds=30))
    nodes_back = Node.objects.create(
        name=lost.name, labels=lost.labels, allocatable=lost.allocatable
    )
    run_cycle()
    clock.shift(HOUR)
    run_cycle()
    assert (status(gang), status(late)) == (Status.RUNNING, Status.PENDING)
    assert nodes_back.ready


@pytest.mark.parametrize(
    ("door", "reason"),
    [(LocalQueue, "LocalQueueStopped"), (ClusterQueue, "ClusterQueueStopped")],
)
def test_a_drained_queue_loses_its_running_work_and_gets_it_back(clock, door, reason):
    nodes(1)
    queue("datos", 4)
    job = work("datos", "job", gpus=4)
    run_cycle()
    reconcile()
    door.objects.update(stop_policy="Hold")
    assert run_cycle().evicted == 0
    door.objects.update(stop_policy="HoldAndDrain")
    clock.shift(HOUR)
    assert run_cycle().evicted == 1
    reconcile()
    assert (run_cycle().held, status(job), job.pending_reason) == (1, Status.PENDING, "OnHold")
    assert job.events.get(kind="evicted").reason == reason
    door.objects.update(stop_policy="None")
    clock.shift(HOUR)
    assert run_cycle().admitted == 1


def test_work_outside_every_queue_gets_nodes_and_is_metered_as_such(clock):
    nodes(1)
    pod = work("nobody", "pod", queue_name="", gpus=3)
    assert run_cycle().admitted == 1
    assert usage(pod) == [("unmanaged", "", 3, NOON, None)]


# ---- what changes between load and apply -------------------------------------------------------
def meanwhile(monkeypatch, change):
    """Let ``change`` happen after the rows were loaded and before the plan is applied."""
    decide = cycle.decide_soundly

    def slow(snapshot):
        plan = decide(snapshot)
        change()
        return plan

    monkeypatch.setattr(cycle, "decide_soundly", slow)


def test_work_that_is_cancelled_meanwhile_is_not_admitted(clock, monkeypatch):
    nodes(1)
    queue("datos", 4)
    gang, other = work("datos", "gang", gpus=2), work("datos", "other", gpus=2)
    meanwhile(monkeypatch, lambda: lifecycle.cancel(gang, at=NOON))
    report = run_cycle()
    assert (report.admitted, report.stale) == (1, 1)
    assert (status(gang), status(other)) == (Status.FINISHED, Status.ADMITTED)
    assert Admission.objects.get().workload == other


def test_a_gang_with_a_node_that_is_cordoned_meanwhile_is_decided_again(clock, monkeypatch):
    nodes(2)
    queue("datos", 8)
    gang = work("datos", "gang", pods=2, gpus=4)
    cordoned = Node.objects.filter(name="h100-node-02")
    meanwhile(monkeypatch, lambda: cordoned.update(schedulable=False, version=F("version") + 1))
    report = run_cycle()
    assert (report.admitted, report.stale, report.moved) == (0, 1, True)
    assert not Placement.objects.exists()
    monkeypatch.undo()
    assert run_cycle().held == 1
    assert status(gang) is Status.PENDING


def with_laws(monkeypatch, laws):
    monkeypatch.setattr(cycle, "decide_soundly", partial(decide_soundly, laws=laws))


def test_a_fault_of_the_engine_stops_its_tree_alone(clock, monkeypatch, caplog):
    nodes(2)
    queue("datos", 4, cohort="llm")
    queue("vision", 4, cohort="lab")
    gang, other = work("datos", "gang", gpus=2), work("vision", "other", gpus=2)

    def laws(_snapshot, plan):
        starts = [d.workload for d in plan.decisions if isinstance(d, Admit)]
        return ("never this one",) if str(gang.uid) in starts else ()

    with_laws(monkeypatch, laws)
    report = run_cycle()
    assert (report.admitted, report.quarantined) == (1, ("cohort llm",))
    assert (status(gang), status(other)) == (Status.PENDING, Status.ADMITTED)
    gang.refresh_from_db()
    assert gang.blockers[0]["facts"] == {"cause": "Quarantined"}
    assert "left out cohort llm: never this one" in caplog.text
    kept = Cycle.objects.get()
    assert kept.faults == {"cohort llm": ["never this one"]}
    assert kept.snapshot is not None

    monkeypatch.undo()  # mended
    run_cycle()
    assert status(gang) is Status.ADMITTED
    assert Cycle.objects.first().faults == {}


def test_a_fault_without_a_tree_is_refused_and_kept_for_the_desk(clock, monkeypatch, caplog):
    nodes(1)
    queue("datos", 4)
    gang = work("datos", "gang", gpus=2)
    with_laws(monkeypatch, lambda *_: ("always",))
    report = run_cycle()
    assert report.refused == ("queue cq-datos: always", "always")
    assert "decided nothing: queue cq-datos: always; always" in caplog.text
    kept = Cycle.objects.get()
    assert (kept.faults["queue cq-datos"], kept.faults[""]) == (["always"], ["always"])
    assert kept.snapshot is not None
    assert status(gang) is Status.PENDING
    assert Lease.objects.get().holder == ""


# ---- by itself and by hand ---------------------------------------------------------------------
def test_the_task_goes_on_while_something_moves(three_teams, monkeypatch):
    monkeypatch.setattr(tasks, "WORKER", Worker())
    gang = work("datos", "gang", gpus=2)
    tasks.run_cycle()
    assert status(gang) is Status.RUNNING
    rounds = Cycle.objects.count()
    tasks.run_cycle()
    assert Cycle.objects.count() == rounds  # nothing to decide, nothing to write
    three_teams.shift(HOUR)
    later = work("ia", "later")
    request_cycle("workload", later.uid)
    tasks.run_cycle()
    assert status(later) is Status.RUNNING


def test_old_cycles_and_changes_are_forgotten_and_their_evidence_sooner(
    three_teams, settings, monkeypatch
):
    settings.CYCLES_KEPT = 4
    monkeypatch.setattr(tasks, "EVIDENCE_KEPT", 1)
    request_cycle("old")
    for round_ in range(6):
        three_teams.shift(HOUR * 8)
        if round_ in {3, 5}:
            work("ia", f"job{round_}", expected_duration_s=60)
        reconcile()
        run_cycle()
    tasks.prune()
    kept = [(c.admitted, c.snapshot is None) for c in Cycle.objects.order_by("id")]
    assert kept == [(0, True), (1, True), (0, True), (1, False)]
    assert not Change.objects.filter(topic="old").exists()
    assert run_cycle().held == 0


def test_a_recorded_reason_with_several_facts_is_decided_the_same(three_teams):
    """Recordings sort the facts of a blocker; the engine names them in its own order."""
    work("datos", "too-large", pods=40, gpus=4)
    work("datos", "gang", gpus=2)
    run_cycle()
    recorded, out = Cycle.objects.get(), StringIO()
    (held,) = [one for one in recorded.plan["decisions"] if one["kind"] == "hold"]
    assert any(len(blocker["facts"]) > 2 for blocker in held["blockers"])
    call_command("replay_cycle", str(recorded.pk), stdout=out)
    assert "the same 2 decisions" in out.getvalue()


def test_the_command_prints_its_decisions_and_a_recorded_cycle_is_decided_the_same(three_teams):
    work("datos", "gang", gpus=2)
    out = StringIO()
    call_command("run_cycle", stdout=out)
    assert out.getvalue().startswith("admitted ns-datos/gang (1x2 GPUs) on h100-node-01\ncycle ")
    recorded = Cycle.objects.get()
    call_command("replay_cycle", str(recorded.pk), stdout=out)
    assert "the same 1 decisions" in out.getvalue()
    recorded.plan["decisions"] = []
    recorded.save()
    with pytest.raises(CommandError, match="decided otherwise"):
        call_command("replay_cycle", str(recorded.pk), stdout=out)
    with pytest.raises(CommandError, match="no snapshot"):
        call_command("replay_cycle", "0", stdout=out)


def test_a_second_decider_keeps_its_hands_off():
    Lease.objects.create(name="cycle", holder="other", until=timezone.now() + HOUR / 60)
    nodes(1)
    queue("datos", 4)
    gang = work("datos", "gang", gpus=2)
    assert not run_cycle().ran
    assert status(gang) is Status.PENDING
    with pytest.raises(CommandError, match="another process"):
        call_command("run_cycle")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="only on PostgreSQL")
def test_edits_of_other_connections_never_wait_and_are_noticed(monkeypatch):
    nodes(4)
    queue("datos", 16)
    cancelled, unlucky, fine = (work("datos", name, gpus=4) for name in ("a", "b", "c"))

    def edit() -> None:
        lifecycle.cancel(Workload.objects.get(pk=cancelled.pk), at=NOON)
        chosen = Node.objects.filter(name="h100-node-02")
        chosen.update(schedulable=False, version=F("version") + 1)
        connection.close()

    def beside() -> None:
        thread = Thread(target=edit)
        thread.start()
        thread.join(timeout=10)
        assert not thread.is_alive()

    meanwhile(monkeypatch, beside)
    report = run_cycle()
    assert (report.admitted, report.stale) == (1, 2)
    assert [status(w) for w in (cancelled, unlucky, fine)] == [
        Status.FINISHED,
        Status.PENDING,
        Status.ADMITTED,
    ]
