"""The house keeps its walls: docs/architecture.md. Most are contracts of import-linter."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from celery import current_app
from django.core.management import call_command

from gpuplatform.celery import app
from gpuplatform.common.wakeup import CYCLE_TASK

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("gpuplatform", "queues", "scheduling", "finops")


def sources(*rooms: str) -> list[Path]:
    """The rooms' own Python files, without migrations."""
    return sorted(
        path.relative_to(ROOT)
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        if "migrations" not in path.parts
    )


def modules(folder: str) -> list[str]:
    return [".".join(path.with_suffix("").parts) for path in sources(folder)]


@pytest.mark.parametrize("package", ["scheduling/engine", "finops/allocation"])
def test_pure_packages_run_without_django(package: str) -> None:
    names = ", ".join(name.removesuffix(".__init__") for name in modules(package))
    frameworks = "{'django', 'celery', 'gpuplatform'}"
    code = f"import sys, {names}; print(sorted({frameworks} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("package", ["scheduling/engine", "finops/allocation"])
def test_pure_packages_have_no_clock_and_no_dice(package: str) -> None:
    forbidden = {"time", "random", "secrets", "uuid", "os", "socket", "threading", "logging"}
    found = {
        (str(path), name)
        for path in sources(package)
        for name in imported(path)
        if name.split(".")[0] in forbidden
    }
    assert found == set()


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_money_is_never_a_float() -> None:
    found = {
        str(path)
        for path in sources("finops")
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "float"
    }
    # These two make pictures only.
    assert found <= {"finops/charts.py", "finops/tiles.py"}


def test_no_migration_is_missing(db: None) -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_wake_up_names_a_real_task() -> None:
    app.loader.import_default_modules()
    assert CYCLE_TASK in current_app.tasks


@pytest.mark.parametrize("entry", sorted(app.conf.beat_schedule))
def test_beat_names_a_registered_task(entry: str) -> None:
    app.loader.import_default_modules()
    assert app.conf.beat_schedule[entry]["task"] in app.tasks


def test_every_task_of_ours_has_a_queue_that_a_worker_serves() -> None:
    app.loader.import_default_modules()
    ours = [name for name in app.tasks if name.split(".")[0] in {*ROOMS, "common", "doors"}]
    served = {"cycle", "cost", "mail"}
    assert ours
    assert {app.amqp.router.route({}, name)["queue"].name for name in ours} <= served


def test_status_of_a_workload_has_one_writer() -> None:
    """Read as text of the program: ``x.status = ...`` and ``update(status=...)``."""
    writers = {
        str(path) for path in sources("scheduling", "finops", "gpuplatform") if writes_status(path)
    }
    assert writers <= {"scheduling/lifecycle.py"}


def writes_status(path: Path) -> bool:
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(
                isinstance(target, ast.Attribute)
                and target.attr == "status"
                # A response or a process has a status too.
                and getattr(target.value, "id", "") in {"workload", "row", "victim", "job"}
                for target in targets
            ):
                return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func.attr in {"update", "bulk_update", "update_or_create"}
            if called and any(keyword.arg == "status" for keyword in node.keywords):
                return True
    return False
