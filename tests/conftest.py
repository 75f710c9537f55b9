"""The cast, the services and the manners of the whole suite."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from tests import answers, services

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GPUPLATFORM_SHARED", ROOT.parent / "shared"))
NO_SHARED = "../shared is not here"
IN_CI = bool(os.environ.get("CI"))
# Which round of `make test` this is: what touches no database is not run twice.
ROUND = os.environ.get("TEST_ROUND", "alone")
# Marks of which at least one test must have passed in this round.
INSISTED = [word for word in os.environ.get(f"INSIST_{ROUND.upper()}", "").split(",") if word]
# A slow machine is no finding, and CI must not depend on luck.
hypothesis_settings.register_profile(
    "house", deadline=None, derandomize=IN_CI, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("house")
DATABASE_FIXTURES = {"db", "cast", "transactional_db", "live_server", "django_db_reset_sequences"}


def pytest_configure(config: pytest.Config) -> None:
    from gpuplatform.celery import app  # noqa: PLC0415

    django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    memory = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    django_settings.CACHES = {"default": memory}
    django_settings.WORLD_KEPT = False  # tests write rows without a version
    app.conf.broker_url = "memory://"  # a test's wake-up must not reach a real worker
    config.addinivalue_line("markers", "shared: reads ../shared")


@pytest.fixture(autouse=True, scope="session")
def judged_answers() -> Iterator[None]:
    """Compare every answer of REST with the schema, whatever a test asks for."""
    with pytest.MonkeyPatch.context() as patch:
        answers.watch(patch)
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker("shared")
        if item.get_closest_marker("services"):
            item.add_marker(pytest.mark.xdist_group("services"))
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("browser"))
    kept = [item for item in items if belongs_to_round(item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def belongs_to_round(item: pytest.Item) -> bool:
    """Return whether a test says something in this round that the other one does not."""
    on_services = item.get_closest_marker("services") is not None
    if ROUND == "first":
        return not on_services  # they have a PostgreSQL of their own, once
    if ROUND == "second":
        if item.get_closest_marker("browser") or by_door(item):
            return False
        uses_database = bool(DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())))
        return on_services or uses_database or item.get_closest_marker("django_db") is not None
    return True


def by_door(item: pytest.Item) -> bool:
    """Return whether a test asks one door as one person: thousands, decided above the database."""
    return item.path.parent.name == "matrix" and item.path.stem in {"test_rows", "test_writes"}


# ---- skips: counted once, and failures where CI insists ---------------------------------------
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Any:
    report = yield
    if refused_skip(report):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where CI insists: {reason_of(report)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    report = yield
    if refused_skip(report):
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped where CI insists: {reason_of(report)}"
    return report


def refused_skip(report: Any) -> bool:
    """Return whether a skip is a failure here; what is for one database only may be skipped."""
    return (
        IN_CI
        and report.skipped
        and not hasattr(report, "wasxfail")
        and not reason_of(report).startswith("only on ")
    )


def reason_of(report: Any) -> str:
    """Return why a test was skipped."""
    longrepr = report.longrepr
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    return text.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    missed = sum(NO_SHARED in reason_of(report) for report in skipped)
    if missed:
        terminalreporter.write_line(
            f"WARNING: {missed} tests were skipped because {SHARED.name}/ does not stand beside"
            " this folder (set GPUPLATFORM_SHARED to name another place)",
            yellow=True,
        )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not INSISTED or hasattr(session.config, "workerinput"):
        return
    ran: Counter[str] = Counter()
    for report in reporter.stats.get("passed", []):
        ran.update(word for word in INSISTED if word in report.keywords)
    for word in INSISTED:
        reporter.write_line(f"ran {ran[word]} tests marked {word}")
    if not all(ran[word] for word in INSISTED):
        reporter.write_line("CI insists on each of these", red=True)
        session.exitstatus = 1


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The tables, made from the models; that stands where migrations would have written it."""
    from django.db import connection  # noqa: PLC0415
    from django.db.migrations.loader import MigrationLoader  # noqa: PLC0415
    from django.db.migrations.recorder import MigrationRecorder  # noqa: PLC0415

    django_settings.MIGRATION_MODULES = {}  # as they really are
    with django_db_blocker.unblock():
        recorder = MigrationRecorder(connection)
        recorder.ensure_schema()
        for app, name in sorted(MigrationLoader(None).disk_migrations):
            recorder.record_applied(app, name)
    yield
    if connection.vendor == "postgresql":  # a thread that has ended may have left one open
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


# ---- places and services ----------------------------------------------------------------------
@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of corpora and data beside the repository."""
    if not SHARED.is_dir():
        pytest.skip(NO_SHARED)
    return SHARED


@pytest.fixture(scope="session")
def manifests() -> Path:
    """The articles' manifests: the repository's copies, else the originals."""
    copies, originals = ROOT / "docs" / "examples", SHARED / "samples" / "manifests"
    for folder in (copies, originals):
        if (folder / "kueue-three-teams.yaml").exists():
            return folder
    pytest.skip(NO_SHARED)


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    """A PostgreSQL server; make databases on it with ``services.database``."""
    with services.postgresql() as url:
        yield url


@pytest.fixture(scope="session")
def broker_url() -> Iterator[str]:
    """A Redis-protocol broker."""
    with services.broker() as url:
        yield url


@pytest.fixture(scope="session")
def migrated(
    postgresql_url: str, broker_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The name of a migrated PostgreSQL database to copy."""
    from tests.integration.stack import stack_on  # noqa: PLC0415

    home = tmp_path_factory.mktemp("migrated")
    with stack_on(postgresql_url, broker_url, home, 0) as made:
        made.manage("migrate", "--no-input")
        yield made.database_url.rsplit("/", 1)[1]


@pytest.fixture(autouse=True)
def forgotten_attempts() -> None:
    """Nobody has tried to sign in yet."""
    from django.core.cache import cache  # noqa: PLC0415

    cache.clear()


# ---- the cast ---------------------------------------------------------------------------------
PASSWORD = "correct horse battery"


def person(name: str, *, role: str = "", **teams: str) -> Any:
    """Create somebody with a platform role and a role per team."""
    from queues.models import Membership, PlatformRole, Team, User  # noqa: PLC0415

    user = User.objects.create_user(name, f"{name}@example.org", PASSWORD)
    if role:
        PlatformRole.objects.create(user=user, role=role)
    for team, team_role in teams.items():
        Membership.objects.create(user=user, team=Team.objects.get(name=team), role=team_role)
    return user


def _team(name: str, display_name: str) -> Any:
    from queues.models import Team  # noqa: PLC0415

    team, _ = Team.objects.get_or_create(name=name, defaults={"display_name": display_name})
    return team


@pytest.fixture
def datos(db: None) -> Any:
    """The team Datos."""
    return _team("datos", "Datos")


@pytest.fixture
def ia(db: None) -> Any:
    """The team IA."""
    return _team("ia", "IA")


@pytest.fixture
def plataforma(db: None) -> Any:
    """The team Plataforma."""
    return _team("plataforma", "Plataforma")


@pytest.fixture
def ada(db: None) -> Any:
    """Ada, platform admin."""
    return person("ada", role="admin")


@pytest.fixture
def lea(datos: Any) -> Any:
    """Lea, lead of Datos."""
    return person("lea", datos="lead")


@pytest.fixture
def ian(ia: Any) -> Any:
    """Ian, member of IA."""
    return person("ian", ia="member")


@pytest.fixture
def fin(db: None) -> Any:
    """Fin, finance."""
    return person("fin", role="finance")


@pytest.fixture
def aud(db: None) -> Any:
    """Aud, auditor."""
    return person("aud", role="auditor")


@pytest.fixture
def eve(db: None) -> Any:
    """Eve, who belongs to nobody."""
    return person("eve")


@pytest.fixture
def cast(request: pytest.FixtureRequest) -> SimpleNamespace:
    """All six, by name."""
    names = ("ada", "lea", "ian", "fin", "aud", "eve")
    return SimpleNamespace(**{name: request.getfixturevalue(name) for name in names})


@pytest.fixture
def signed_in() -> Callable[[Any], Client]:
    """Return a browser in which a person is signed in."""

    def browser_of(user: Any) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return browser_of


@pytest.fixture
def token_of(db: None) -> Callable[..., str]:
    """Return a fresh token of a person, ready for the ``Authorization`` header."""

    def make(user: Any, *scopes: str, team: Any = None) -> str:
        from queues.models import ApiToken  # noqa: PLC0415

        _, token = ApiToken.objects.create(
            user=user,
            name="test",
            scopes=list(scopes) or ["read", "workloads:submit", "quota:write", "admin"],
            team=team,
            expiry=timedelta(hours=1),
        )
        return f"Bearer {token}"

    return make
