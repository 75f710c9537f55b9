"""A real Prometheus that scrapes a small exporter: the questions of finops.md 1.9."""

import shutil
import socket
import subprocess
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import httpx
import pytest
from werkzeug import Response

from finops.sources.http import Address, Connection
from finops.sources.prometheus import answered, month_to_date_query
from finops.sources.prometheus_reader import PrometheusReader
from finops.sources.rows import GpuUse, NodePrice
from finops.sources.windows import Window

SERVER = shutil.which("prometheus")
NODE = "h100-node-01"
# Datos holds two GPUs in two pods, IA one; the price stands twice, as two scrapes leave it.
EXPORTED = f"""
container_gpu_allocation{{namespace="ns-datos",pod="a",node="{NODE}"}} 1
container_gpu_allocation{{namespace="ns-datos",pod="b",node="{NODE}"}} 1
container_gpu_allocation{{namespace="ns-ia",pod="c",node="{NODE}"}} 1
kube_pod_labels{{namespace="ns-datos",pod="a",label_equipo="datos"}} 1
kube_pod_labels{{namespace="ns-datos",pod="b",label_equipo="datos"}} 1
kube_pod_labels{{namespace="ns-ia",pod="c",label_equipo="ia"}} 1
node_gpu_hourly_cost{{node="{NODE}",pod="opencost-1"}} 1.4
node_gpu_hourly_cost{{node="{NODE}",pod="opencost-2"}} 1.4
DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-0",Hostname="{NODE}",namespace="ns-datos",pod="a"}} 75
DCGM_FI_DEV_GPU_UTIL{{gpu="1",UUID="GPU-1",Hostname="{NODE}",namespace="ns-datos",pod="b"}} 0
"""


@pytest.fixture
def server(httpserver, tmp_path):
    """Prometheus with some seconds of samples of the exporter."""
    if SERVER is None:
        pytest.skip("only on machines with Prometheus")
    exporter = httpserver.expect_request("/metrics")
    exporter.respond_with_handler(lambda _request: Response(EXPORTED, content_type="text/plain"))
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        "scrape_configs:\n"
        "- job_name: exporter\n"
        "  honor_labels: true\n"
        f"  static_configs: [{{targets: ['localhost:{httpserver.port}']}}]\n"
    )
    command = [SERVER, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    with subprocess.Popen(command, cwd=tmp_path) as process:
        url = f"http://127.0.0.1:{port}"
        until_scraped(url)
        yield url
        process.terminate()


def until_scraped(url, samples=6):
    deadline = time.monotonic() + 60
    query = f"min(count_over_time(kube_pod_labels[5m])) >= {samples}"
    while time.monotonic() < deadline:
        try:
            answer = httpx.get(f"{url}/api/v1/query", params={"query": query}).json()
            if answer["data"]["result"]:
                return
        except (httpx.TransportError, ValueError, KeyError):
            pass
        time.sleep(0.5)
    pytest.fail("Prometheus has scraped nothing")


def test_the_articles_questions_have_the_right_answers(server):
    now = datetime.now(UTC)
    with Connection(Address(server, frozenset({"127.0.0.1"}))) as connection:
        reader = PrometheusReader(connection, step_s=15)
        found = reader.questions(now, now - timedelta(hours=1))
        assert {team: Decimal(euro) for team, euro in found["cost_per_team"].items()} == {
            "datos": Decimal("2.8"),
            "ia": Decimal("1.4"),
        }
        assert found["unused_gpus"] == {NODE: "1.25"}
        assert found["unused_cost"] == {NODE: "1.75"}
        # Its steps of 300 s may fall before the first scrape; in steps of a second they cannot.
        query = month_to_date_query("label_equipo", timedelta(hours=1), step_s=1)
        body = connection.get("api/v1/query", query=query, time=int(now.timestamp()))
    series, _notes = answered(body, "vector")
    month = {one.metric["label_equipo"]: Decimal(one.value[1]) for one in series}
    seconds = month["datos"] * 3600 / Decimal("2.8")
    assert 1 <= round(seconds, 6) <= 120  # since the first scrape, not the whole hour
    assert abs(month["datos"] - 2 * month["ia"]) < Decimal("1e-9")


def test_a_stretch_is_read_as_hours_by_gpu(server):
    end = datetime.fromtimestamp(int(time.time()) + 10, UTC)
    with Connection(Address(server, frozenset({"127.0.0.1"}))) as connection:
        window = Window(end - timedelta(seconds=30), end)
        reading = PrometheusReader(connection, step_s=15).read(window)
    uses = [row for row in reading.rows if isinstance(row, GpuUse)]
    assert {(row.node, row.gpu, row.pod) for row in uses} == {
        (NODE, "GPU-0", "a"),
        (NODE, "GPU-1", "b"),
    }
    for row in uses:
        share = row.busy_gpu_hours / row.sampled_gpu_hours
        assert abs(share - (Decimal("0.75") if row.gpu == "GPU-0" else 0)) < Decimal("0.001")
    assert [row.gpu_hour for row in reading.rows if isinstance(row, NodePrice)] in (
        [],
        [Decimal("1.4")],
    )
