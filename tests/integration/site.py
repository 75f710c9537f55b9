"""One running set of processes for many faults: servers, web, beat and worker, to be broken."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from tests import services
from tests.integration.cluster import GPU, assert_whole, nodes, queue
from tests.integration.stack import BEAT, WORKER, Stack, as_text

PEOPLE = (Path(__file__).parent / "people.py").read_text()
# One process for all of it: to start one takes longer than what it then does.
BEGIN = """
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
call_command("import_manifests", "{}")
"""
TICK_S = 2.0  # of beat
SLOW_S = 20.0  # what a busy machine may take for what takes no time, and to start a process


class Site(Stack):
    """The product on a database and a broker of its own; whatever ends is started again."""

    def __init__(
        self, database: services.Server, broker: services.Server, home: Path, stack: ExitStack
    ) -> None:
        super().__init__(database.url, broker.url, home, stack)
        self.database, self.broker = database, broker
        self.clock = home / "clock"
        self.clock.write_text("0")
        self.environment |= {"CYCLE_STUCK_S": "1", "CYCLE_LEASE_S": "2"}
        with psycopg.connect(database.url, autocommit=True) as connection:
            # What was committed must outlive a crash, here as in production.
            connection.execute("ALTER DATABASE postgres SET synchronous_commit TO on")
        documents = home / "documents.yaml"
        documents.write_text(as_text([*nodes(8), *queue(32)]))
        told = self.manage("shell", "-v", "0", text=BEGIN.format(documents) + PEOPLE)
        self.token = json.loads(told.splitlines()[-1])["ada"]
        self.processes: dict[str, subprocess.Popen] = {}
        self.submitted: list[str] = []

    # ---- processes ------------------------------------------------------------------------------
    def run(self, name: str) -> subprocess.Popen:
        """Start one of the processes, on the clock that :meth:`step` sets."""
        web = ("uvicorn", "gpuplatform.asgi:application", "--lifespan=off", f"--port={self.port}")
        module = {
            "web": (*web, "--log-level=warning"),
            "beat": (*BEAT, "-s", str(self.home / "beat")),
        }.get(name, (*WORKER, "-n", f"{name}@%h"))
        process = self.start("tests.integration.stepping", str(self.clock), *module)
        self.processes[name] = process
        return process

    def tend(self) -> None:
        """Let web, beat and one worker run, whatever the last case has left."""
        self.wake_all()
        if "other" in self.processes:
            self.kill("other")
        for name in ("web", "beat", "worker"):
            if name not in self.processes:
                self.run(name)
        self.until(lambda: self.call("GET", "/readyz").status == 200, "the web server is ready")

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def pause(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGSTOP)

    def wake_all(self) -> None:
        for process in (*self.processes.values(), self.broker.process):
            process.send_signal(signal.SIGCONT)

    def step(self, seconds: float) -> None:
        """Set the clock of the machine by so many seconds off the right time."""
        fresh = self.clock.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.replace(self.clock)

    # ---- work -----------------------------------------------------------------------------------
    def submit(self, pods: int = 2) -> str:
        """Submit a gang that runs for a second."""
        body = {
            "name": f"gang-{len(self.submitted)}",
            "namespace": "ns",
            "queue": "lq",
            "pod_sets": [{"name": "main", "count": pods, "requests": {GPU: 2}}],
            "expected_duration_s": 1,
        }
        answer = self.call("POST", "/api/v1/workloads/", body, token=self.token)
        assert answer.status == 201, answer.body
        self.submitted.append(str(answer.body["uid"]))
        return self.submitted[-1]

    def status(self, uid: str) -> str:
        return str(self.one("SELECT status FROM scheduling_workload WHERE uid = %s", uid))

    def goes_on(self, *, to_its_end: bool = False) -> None:
        """New work runs within two beats, and what is held is whole.

        ``to_its_end``: it also ends, which no wake-up tells; beat alone does.
        """
        uid = self.submit()
        wanted = ("finished",) if to_its_end else ("running", "finished")
        soon = 2 * TICK_S + SLOW_S + to_its_end
        self.until(lambda: self.status(uid) in wanted, "work goes on", soon)
        assert_whole(self)

    def assert_all_has_run_once(self) -> None:
        """Whatever was submitted has ended well, once, and holds nothing any more."""
        self.until(
            lambda: self.one(
                "SELECT count(*) = 0 FROM scheduling_workload w WHERE status <> 'finished'"
                " OR EXISTS (SELECT 1 FROM scheduling_admission a"
                " WHERE a.workload_id = w.uid AND a.released_at IS NULL)"
            ),
            "everything has run",
        )
        assert_whole(self)
        rows = self.rows(
            "SELECT w.uid, w.outcome, (SELECT count(*) FROM scheduling_admission a"
            " WHERE a.workload_id = w.uid) AS times,"
            " (SELECT count(*) FROM scheduling_workloadevent e"
            " WHERE e.workload_id = w.uid AND e.kind = 'admitted') AS told,"
            " (SELECT count(DISTINCT u.admission_id) FROM scheduling_usageinterval u"
            " WHERE u.workload_id = w.uid AND u.resource = %s) AS metered"
            " FROM scheduling_workload w",
            GPU,
        )
        once = {"outcome": "succeeded", "times": 1, "told": 1, "metered": 1}
        assert [row for row in rows if {k: row[k] for k in once} != once] == []
        assert {str(row["uid"]) for row in rows} == set(self.submitted)
        cycles = self.rows("SELECT fence FROM scheduling_cycle ORDER BY id")
        assert [row["fence"] for row in cycles] == sorted(row["fence"] for row in cycles)

    # ---- the middle of a cycle ------------------------------------------------------------------
    @contextmanager
    def standing_at(self, lock: str, table: str) -> Iterator[None]:
        """Let whoever decides stand still at ``table`` while the block runs."""
        with psycopg.connect(self.database_url) as connection:
            connection.execute(lock)
            self.submit()
            self.until(lambda: self._waits_for(table), f"the worker stands at {table}")
            yield
            connection.rollback()

    def _waits_for(self, table: str) -> bool:
        return bool(
            self.one(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database() AND query ILIKE %s",
                f"%{table}%",
            )
        )


@contextmanager
def running_site(home: Path) -> Iterator[Site]:
    """Yield the product on servers of its own."""
    with ExitStack() as stack:
        database = stack.enter_context(services.own_postgresql())
        broker = stack.enter_context(services.own_broker())
        yield Site(database, broker, home, stack)
