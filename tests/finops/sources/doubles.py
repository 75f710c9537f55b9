"""Doubles of other systems: small, and as strict about questions as the real ones."""

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from werkzeug import Request, Response

NODE = "h100-node-01"
GPUS = 4
RATE = 1.4


@dataclass
class OpenCostDouble:
    """Answers ``/allocation`` from ``days``, the rest from numbers of one node of four GPUs.

    ``faults`` are taken first, one a request, whatever is asked: a (status, body).
    """

    days: dict[date, list[Any]] = field(default_factory=dict)
    faults: list[tuple[int, bytes]] = field(default_factory=list)
    fault_at: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # by path, each time
    asked: list[Request] = field(default_factory=list)
    gpu_price: float = RATE
    gpu_hours_of_day: float = GPUS * 24
    most_hours: float = 10_000  # of a window; longer ones end in a time-out of its Prometheus
    warning: str = ""

    def answer(self, request: Request) -> Response:
        """Return what OpenCost would."""
        self.asked.append(request)
        path = request.path.rpartition("/")[2]
        if self.faults:
            return _raw(*self.faults.pop(0))
        if path in self.fault_at:
            return _raw(*self.fault_at[path])
        if path == "allNodePricing":
            return _json({"default,gpu": {"CPU": "0.0", "RAM": "0.0", "GPU": "1.40"}})
        start, end = (_instant(text) for text in request.args["window"].split(","))
        if (end - start) / timedelta(hours=1) > self.most_hours:
            return _raw(500, b'{"code": 500, "data": null, "message": "query timed out"}')
        if path == "assets":
            return _json(self._assets(start, end))
        return _json(self._sets(start, end), warning=self.warning)

    def questions(self, path: str = "allocation") -> list[Any]:
        """Return the parameters of what was asked there."""
        return [one.args for one in self.asked if one.path.endswith(path)]

    def _sets(self, start: datetime, end: datetime) -> list[Any]:
        sets = self.days.get(start.date(), [])
        part = (end - start) / timedelta(days=1)
        return [_cut(rows, start, end, part) if rows else rows for rows in sets]

    def _assets(self, start: datetime, end: datetime) -> dict[str, Any]:
        hours = self.gpu_hours_of_day * ((end - start) / timedelta(days=1))
        window = {"start": _zulu(start), "end": _zulu(end)}
        return {
            f"custom/{NODE}": {
                "type": "Node",
                "properties": {"cluster": "gpu-onprem", "name": NODE},
                "window": window,
                "GPUHours": hours,
                "gpuCost": hours * self.gpu_price,
                "totalCost": hours * self.gpu_price,
            }
        }


def _cut(rows: dict[str, Any], start: datetime, end: datetime, part: float) -> dict[str, Any]:
    """Return the rows of a day as they are in a part of it, used evenly."""
    cut = {}
    for name, row in rows.items():
        amounts = {
            key: value * part
            for key, value in row.items()
            if key.endswith(("Hours", "Cost")) and isinstance(value, int | float)
        }
        cut[name] = row | amounts | {"window": {"start": _zulu(start), "end": _zulu(end)}}
    return cut


def _json(found: Any, **more: Any) -> Response:
    body = {"code": 200, "status": "success", "data": found} | {k: v for k, v in more.items() if v}
    return _raw(200, json.dumps(body).encode())


def _raw(status: int, body: bytes) -> Response:
    return Response(body, status=status, content_type="application/json")


def _instant(text: str) -> datetime:
    """Read what OpenCost's grammar takes: only the form with Z."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _zulu(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class LiteLLMDouble:
    """Answers ``/spend/logs/v2`` and ``/team/daily/activity`` from rows, page by page."""

    logs: list[dict[str, Any]] = field(default_factory=list)
    days: list[dict[str, Any]] = field(default_factory=list)
    faults: list[tuple[int, bytes]] = field(default_factory=list)
    page_size: int = 10  # it gives no more at a time, whatever it is asked for
    overlap: int = 0  # rows that come again on the next page
    stuck: bool = False  # every page is the first one
    asked: list[Request] = field(default_factory=list)

    def answer(self, request: Request) -> Response:
        """Return what LiteLLM would."""
        self.asked.append(request)
        if self.faults:
            return _raw(*self.faults.pop(0))
        if request.path.endswith("activity"):
            return self._activity(request.args)
        return self._logs(request.args)

    def _logs(self, asked: Any) -> Response:
        first, last = (_said(asked[name]) for name in ("start_date", "end_date"))
        found = sorted(
            (log for log in self.logs if first <= _begun(log) <= last),
            key=lambda log: (log["startTime"], log["request_id"]),
        )
        size = min(int(asked["page_size"]), self.page_size)
        page = 1 if self.stuck else int(asked["page"])
        start = max(0, (page - 1) * size - self.overlap * (page - 1))
        rows = found[start : start + size] if (page - 1) * size < len(found) + size else []
        pages = -(-len(found) // size)
        body = {"data": rows, "total": len(found), "page": page, "page_size": size}
        return _raw(200, json.dumps(body | {"total_pages": pages}).encode())

    def _activity(self, asked: Any) -> Response:
        found = [
            day for day in self.days if asked["start_date"] <= day["date"] <= asked["end_date"]
        ]
        page = int(asked["page"])
        body = {"results": found[page - 1 : page], "metadata": {"has_more": page < len(found)}}
        return _raw(200, json.dumps(body).encode())


def _said(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)


def _begun(log: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(log["startTime"])
