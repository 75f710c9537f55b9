"""REST's door for many workloads at once: each is answered for itself."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.dry_run import PARAMETER as DRY_RUN
from gpuplatform.common.dry_run import is_dry_run
from gpuplatform.common.http import rejection, status_of
from gpuplatform.common.paging import CheckedView
from gpuplatform.common.parsers import StrictJSONParser
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.rest_shapes import FINDINGS, told
from queues.access import HasScope, actor_of
from scheduling.bulk import MOST, Answer, submit_many
from scheduling.inputs import WorkloadInput
from scheduling.rest_shapes import ACCEPTED, PROBLEM
from scheduling.specs import WorkloadSpec
from scheduling.workload_body import read_workload

FIELD, NOBODY = "workloads", UUID(int=0)


class WorkloadsInput(serializers.Serializer[Any]):
    """Workloads as a client submits many of them."""

    workloads = WorkloadInput(many=True, max_length=MOST)  # type: ignore[call-arg]  # of the list


class WorkloadAnswer(serializers.Serializer[Any]):
    """What became of one of them: ``workload`` where it was accepted, else ``problem``."""

    index = serializers.IntegerField()
    status = serializers.IntegerField()
    workload = told(ACCEPTED, required=False)
    warnings = told(FINDINGS, required=False)
    problem = told(PROBLEM, required=False)


class WorkloadAnswers(serializers.Serializer[Any]):
    """What became of all of them, in the order in which they were given."""

    accepted = serializers.IntegerField()
    refused = serializers.IntegerField()
    dry_run = serializers.BooleanField(required=False)
    results = WorkloadAnswer(many=True)


class WorkloadsBulkView(CheckedView):
    """``/api/v1/workloads/bulk/``: the way to submit up to 1,000 workloads in one call."""

    parser_classes = (StrictJSONParser,)
    permission_classes = (HasScope,)
    scopes = {"POST": "workloads:submit"}
    parameters = {"POST": ("dry_run",)}
    later = ("POST",)

    @extend_schema(request=WorkloadsInput, responses={200: WorkloadAnswers}, parameters=[DRY_RUN])
    def post(self, request: Request) -> Response:
        """Submit workloads; each is judged by itself, and those that may run are all taken in.

        Where none of them may, the call is refused, with the problems of all.
        """
        dry_run, asked = is_dry_run(request), _read(request.data)
        answers = submit_many(asked, actor=actor_of(request), dry_run=dry_run)
        refused = sum(isinstance(one, Rejected) for one in answers)
        if refused == len(answers):
            raise _together(answers)
        address = reverse("api-workload", args=[NOBODY])
        results = [_told(i, one, request.path, address) for i, one in enumerate(answers)]
        counts = {"accepted": len(answers) - refused, "refused": refused}
        more = {"dry_run": True} if dry_run else {}
        return Response({**counts, **more, "results": results})


def _read(body: Any) -> list[WorkloadSpec | Rejected]:
    """Return what each item asks for, or why it cannot be read.

    Raises:
        Rejected: there is no list of workloads, it is empty or too long.
    """
    if not isinstance(body, Mapping) or not isinstance(body.get(FIELD), list):
        raise _refusal("REQUIRED", FIELD)
    if unknown := [str(name) for name in body if name != FIELD]:
        raise Rejected([_refusal("UNKNOWN_FIELD", name[:64]).problems[0] for name in unknown])
    items = body[FIELD]
    if not 1 <= len(items) <= MOST:
        raise _refusal("OUT_OF_RANGE", FIELD, value=len(items), low=1, high=MOST)
    return [_item(item) for item in items]


def _refusal(code: str, path: str, **numbers: Any) -> Rejected:
    return Rejected([Diagnostic(code, "", path, numbers).as_problem()])


def _item(item: Any) -> WorkloadSpec | Rejected:
    try:
        return read_workload(item)
    except Rejected as refused:
        return refused


def _told(index: int, one: Answer, path: str, address: str) -> dict[str, Any]:
    if isinstance(one, Rejected):
        status = status_of(one)
        told = rejection(_placed(index, one), status, path)
        return {"index": index, "status": int(status), "problem": told}
    warnings = [diagnostic.as_json() for diagnostic in one.diagnostics]
    shown: dict[str, Any] = {"name": one.spec.name, "namespace": one.spec.namespace}
    if one.uid is None:
        return {
            "index": index,
            "status": int(HTTPStatus.OK),
            "workload": shown,
            "warnings": warnings,
        }
    shown |= {"uid": str(one.uid), "status": "pending", "gpus": one.gpus}
    shown["url"] = address.replace(str(NOBODY), shown["uid"])
    return {
        "index": index,
        "status": int(HTTPStatus.CREATED),
        "workload": shown,
        "warnings": warnings,
    }


def _together(answers: Iterable[Answer]) -> Rejected:
    """Return one refusal for all that were refused."""
    found = [_placed(i, one) for i, one in enumerate(answers) if isinstance(one, Rejected)]
    whole = Rejected([problem for one in found for problem in one.problems])
    whole.warnings = [warning for one in found for warning in one.warnings]
    return whole


def _placed(index: int, refused: Rejected) -> Rejected:
    """Return the refusal with paths that lead to the item in the body."""
    problems = [replace(one, path=_below(index, one)) for one in refused.problems]
    placed = Rejected(problems)
    placed.warnings = refused.warnings
    return placed


def _below(index: int, problem: Problem) -> str:
    return f"{FIELD}[{index}].{problem.path}" if problem.path else f"{FIELD}[{index}]"
