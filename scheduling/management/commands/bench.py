"""``manage.py bench NAME``: print the figures of a bench. Exit 0 whatever they are."""

import gzip
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from scheduling.bench import (
    bulk,
    coldstart,
    drain,
    gang,
    gangs,
    kueue_load,
    openb,
    paced,
    philly,
    submit,
)
from scheduling.bench.registry import registered
from scheduling.bench.report import Report
from scheduling.engine.terms import PlacementPolicy
from scheduling.replay.reading import read_trace
from scheduling.replay.site import node_gpus, read_site

OWN = {
    one.name: one for one in (gangs.BENCH, paced.BENCH, coldstart.BENCH, bulk.BENCH, submit.BENCH)
}
LOADS = ("baseline", "large_scale", "tas")


class Command(BaseCommand):
    """Run one bench; nothing is read from or written to the database."""

    help = "Run a bench and print its figures as a table, or as JSON with --json."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the name of the bench and its options."""
        benches = parser.add_subparsers(dest="name", required=True)
        load = benches.add_parser("kueue-load", help="Kueue's own load, in virtual time")
        load.add_argument("load", choices=LOADS)
        load.add_argument("--all-pending", action="store_true", help="everything arrives at once")
        load.add_argument("--fair", action="store_true", help="cohorts share fairly")
        load.add_argument("--repeat", type=int, default=3)
        load.add_argument("--nodes", type=int, help="tas: how many nodes")
        load.add_argument("--workloads", type=int, help="tas: how many workloads")
        load.add_argument("--json", action="store_true")
        pack = benches.add_parser("openb", help="packing single pods on the nodes of a real trace")
        pack.add_argument("--policy", choices=tuple(openb.RIVALS), default="fragmentation")
        pack.add_argument("--list", default="default", help="the pod list (default: default)")
        pack.add_argument("--seeds", type=_numbers, default=openb.SEEDS, metavar="42,43")
        pack.add_argument("--json", action="store_true")

        philly_trace = benches.add_parser("philly", help="61 days of a real cluster, replayed")
        philly_trace.add_argument("--cut", choices=("full", "week"), default="full")
        philly_trace.add_argument(
            "--part", choices=philly.PARTS, action="append", help="default: all"
        )
        philly_trace.add_argument("--json", action="store_true")
        churn = benches.add_parser("gang", help="gangs that come and go on a full cluster")
        policies = tuple(PlacementPolicy)
        churn.add_argument("--policy", choices=policies, default=PlacementPolicy.BINPACK)
        churn.add_argument("--nodes", type=_numbers, default=(1_000, 10_000), metavar="1000,10000")
        churn.add_argument("--decisions", type=int, default=3_000)
        churn.add_argument("--json", action="store_true")

        drained = benches.add_parser("drain", help="a large load, all pending, with all its rows")
        drained.add_argument("--workloads", type=int, help="how many in all (default: 50000)")
        drained.add_argument("--json", action="store_true")
        for bench in (OWN | registered()).values():
            more = benches.add_parser(bench.name, help=bench.help)
            bench.add_arguments(more)
            more.add_argument("--json", action="store_true")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the bench and print."""
        runs = {
            "kueue-load": self._kueue_load,
            "openb": self._openb,
            "gang": self._gang,
            "drain": self._drain,
            "philly": self._philly,
            **{bench.name: bench.run for bench in (OWN | registered()).values()},
        }
        report = runs[options["name"]](options)
        self.stdout.write(report.as_json() if options["json"] else report.as_table())

    def _kueue_load(self, options: dict[str, Any]) -> Report:
        data = json.loads(self._path("kueue-perf", f"{options['load']}.json").read_text("utf-8"))
        return kueue_load.bench(
            data,
            all_pending=options["all_pending"],
            fair=options["fair"],
            repeat=options["repeat"],
            scale=kueue_load.Scale(options["nodes"], options["workloads"]),
        )

    def _openb(self, options: dict[str, Any]) -> Report:
        path = self._path("openb", f"openb_pod_list_{options['list']}.csv")
        trace = openb.read_trace(path.parent, options["list"])
        return openb.bench(trace, options["policy"], options["seeds"])

    def _gang(self, options: dict[str, Any]) -> Report:
        policy = PlacementPolicy(options["policy"])
        return gang.bench(policy, options["nodes"], options["decisions"])

    def _drain(self, options: dict[str, Any]) -> Report:
        data = json.loads(self._path("kueue-perf", "large_scale.json").read_text("utf-8"))
        return drain.bench(data, options["workloads"])

    def _philly(self, options: dict[str, Any]) -> Report:
        cluster = self._path("philly", "cluster.json")
        site = read_site(cluster.name, cluster.read_text("utf-8"))
        rows = gzip.decompress(self._path("philly", "jobs.csv.gz").read_bytes()).decode()
        trace = read_trace("jobs.csv", rows, node_gpus(site))
        reference = json.loads(self._path("philly", "reference.json").read_text("utf-8"))
        data = philly.Data(site, trace, reference["results"])
        return philly.bench(data, options["cut"], options["part"] or philly.PARTS)

    def _path(self, *parts: str) -> Path:
        path = Path(settings.SHARED_DATA, *parts)
        if not path.exists():
            raise CommandError(f"{path} is not here: benches read the data beside the repository.")
        return path


def _numbers(text: str) -> tuple[int, ...]:
    """Read numbers with commas between them."""
    return tuple(map(int, text.split(",")))
