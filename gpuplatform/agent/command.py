"""The agent's command line, the same through ``manage.py agent`` and as a module."""

import argparse
import logging
import os
import signal
from pathlib import Path
from typing import Any

from gpuplatform.agent.client import Away, Platform, Refused
from gpuplatform.agent.loop import Agent, Machine
from gpuplatform.agent.memory import Taken, open_memory

logger = logging.getLogger("gpuplatform.agent")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take where the platform is, who this agent is, and what its machine has."""
    parser.add_argument("--url", required=True, help="address of the platform")
    parser.add_argument("--token-file", required=True, type=Path, help="file with the token")
    parser.add_argument("--node", required=True, help="name of this machine as a node")
    parser.add_argument("--name", default="", help="name of the agent (default: the node's)")
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--cpus", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--memory-gib", type=int, default=_memory_gib())
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--folder", type=Path, default=Path.home() / ".gpuplatform-agent", help="what it remembers"
    )
    parser.add_argument("--poll", type=float, default=0.0, help="seconds; 0: as the platform says")
    parser.add_argument(
        "--stop-members", action="store_true", help="at its end; else they run on without it"
    )


def run(options: dict[str, Any]) -> int:
    """Be the agent until a signal comes; return the exit code."""
    name = options["name"] or options["node"]
    labels = dict(label.split("=", 1) for label in options["label"] if "=" in label)
    memory_bytes = options["memory_gib"] * 2**30
    machine = Machine(options["node"], options["gpus"], options["cpus"], memory_bytes, labels)
    try:
        memory, lock = open_memory(options["folder"] / name)
    except Taken as error:
        logger.error("another agent works in %s", error)  # noqa: TRY400
        return 1
    platform = Platform(options["url"], options["token_file"], name)
    agent = Agent(platform, machine, memory, poll_s=options["poll"])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, agent.stop)
    with lock:
        return _work(agent, stop_members=options["stop_members"])


def _work(agent: Agent, *, stop_members: bool) -> int:
    try:
        agent.run()
        if stop_members:
            agent.stop_members()
    except Refused as error:
        logger.error("refused: %s", error)  # noqa: TRY400  # the sentence says it all
        return 1
    except Away as error:
        logger.warning("the platform is away: %s", error)
    logger.info("stopped; %s members go on", len(agent.memory.members))
    return 0


def _memory_gib() -> int:
    try:
        return max(1, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30)
    except (ValueError, OSError):
        return 1
