"""Examples of what agents and the platform say to each other, for the schema and the docs."""

from typing import Any

from drf_spectacular.utils import OpenApiExample

MEMBER = "12.1.worker.0.1@node-1"


def _example(name: str, value: Any, *, asked: bool) -> OpenApiExample:
    return OpenApiExample(name, value=value, request_only=asked, response_only=not asked)


HELLO = _example("A new memory", {"version": "slurm-wrapper 1.0"}, asked=True)
HELLO_ANSWER = _example(
    "Reports are numbered from 1",
    {
        "agent": "rack-1",
        "epoch": 1,
        "sequence": 0,
        "poll_s": 2.0,
        "silent_after_s": 60.0,
        "most_reports": 500,
    },
    asked=False,
)
REPORTS = (
    _example(
        "A node and what it has",
        {
            "epoch": 1,
            "reports": [
                {
                    "sequence": 1,
                    "kind": "node",
                    "node": {
                        "name": "node-1",
                        "labels": {"accelerator": "h100-sxm"},
                        "capacity": {
                            "nvidia.com/gpu": 8,
                            "cpu": "96",
                            "memory": "1Ti",
                            "pods": 110,
                        },
                        "ready": True,
                    },
                }
            ],
        },
        asked=True,
    ),
    _example(
        "A member is ready, has saved its progress, and has failed",
        {
            "epoch": 1,
            "reports": [
                {"sequence": 2, "kind": "ready", "member": MEMBER},
                {
                    "sequence": 3,
                    "kind": "checkpoint",
                    "member": MEMBER,
                    "at": "2026-06-01T12:00:00Z",
                },
                {"sequence": 4, "kind": "failed", "member": MEMBER, "exit_code": 137},
            ],
        },
        asked=True,
    ),
    _example("A heartbeat", {"epoch": 1, "reports": []}, asked=True),
)
RECEIPT = _example(
    "All were new", {"sequence": 4, "taken": 3, "repeated": 0, "ignored": 0}, asked=False
)
DESIRED = _example(
    "One member should run, one should stop",
    {
        "agent": "rack-1",
        "epoch": 1,
        "run": [
            {
                "member": MEMBER,
                "workload": {
                    "uid": "7b9d2c9e-6b0e-4f5d-9d2c-0d5f6c1b2a3e",
                    "namespace": "ns-research",
                    "name": "train",
                    "annotations": {"gpuplatform.io/command": "python train.py"},
                },
                "admission": 12,
                "attempt": 1,
                "pod_set": "worker",
                "node": "node-1",
                "slot": 0,
                "rank": 0,
                "gang": {"size": 2, "leader": "node-1", "nodes": ["node-1", "node-2"]},
                "heard": "",
                "requests": {"nvidia.com/gpu": 4},
                "gpus": 4,
                "devices": None,
                "grace_s": 30,
                "container": None,
                "command": "python train.py",
            }
        ],
        "stop": [{"member": "9.1.worker.0.1@node-1", "grace_s": 30}],
    },
    asked=False,
)
