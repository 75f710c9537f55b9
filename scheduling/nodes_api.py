"""REST of machines: the list, one of them, cordoning and forgetting."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import django_filters
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView, get_object_or_404
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common.consequences import carry_out
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.dry_run import PARAMETER as DRY_RUN
from gpuplatform.common.dry_run import is_dry_run
from gpuplatform.common.lists import PARAMETERS as LISTS
from gpuplatform.common.paging import PAGES, ByName, CheckedView, truth
from gpuplatform.common.parsers import StrictJSONParser
from gpuplatform.common.yamls import YAMLRenderer, wants_yaml, yaml_answer
from queues.access import HasScope, actor_of, insist
from queues.versions import etag, seen_version
from scheduling.api import CHUNK, AsFile
from scheduling.manifests.export import manifest_of
from scheduling.models import Node
from scheduling.node_serializers import (
    FORGOTTEN,
    NodeChangeInput,
    NodeSavedSerializer,
    NodeSerializer,
)
from scheduling.selectors.nodes import node_rows
from scheduling.services import delete_node, describe_node, set_cordon
from scheduling.specs import NodeDrain, NodeRemoval
from scheduling.workload_body import read_node_change


class NodeFilter(django_filters.FilterSet):  # type: ignore[misc]  # untyped
    """Filters of the node list."""

    name = django_filters.CharFilter(lookup_expr="icontains")
    ready = django_filters.BooleanFilter()
    schedulable = django_filters.BooleanFilter()

    class Meta:
        model = Node
        fields: tuple[str, ...] = ()


class NodesView(AsFile, ListAPIView[Node]):
    """``/api/v1/nodes/``: machines; everybody who is signed in sees them."""

    permission_classes = (HasScope,)
    pagination_class = ByName
    serializer_class = NodeSerializer
    filter_backends = (django_filters.rest_framework.DjangoFilterBackend,)
    filterset_class = NodeFilter
    parameters = {"GET": (*PAGES, *NodeFilter.base_filters)}
    queryset = Node.objects.all()

    def get_serializer(self, *args: Any, **kwargs: Any) -> Any:
        """Return DRF's serializer of a page, told who holds what on its machines."""
        if args:
            names = [row.name for row in args[0]]
            kwargs["context"] = _use_of(self.request, names)
        return super().get_serializer(*args, **kwargs)

    @extend_schema(parameters=LISTS)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a file is no Response
        """Return one page, by name, or all rows as a file."""
        for name in ("ready", "schedulable"):
            truth(request, name)
        as_file = self.is_file(request)
        return self.file(request) if as_file else super().get(request, *args, **kwargs)

    def manifests(self, rows: QuerySet[Node]) -> Iterator[Mapping[str, Any]]:
        """Yield each machine as Kubernetes' Node."""
        return (manifest_of(describe_node(row)) for row in rows.iterator(chunk_size=CHUNK))


class NodeView(CheckedView):
    """``/api/v1/nodes/<name>/``: one machine, and the ways to cordon and to forget it."""

    parser_classes = (StrictJSONParser,)
    renderer_classes = (JSONRenderer, YAMLRenderer)
    permission_classes = (HasScope,)
    scopes = {"PATCH": "workloads:admin", "DELETE": "workloads:admin"}
    parameters = {"PATCH": ("dry_run",), "DELETE": ("dry_run",)}
    versioned = ("PATCH", "DELETE")

    @extend_schema(responses=NodeSerializer)
    def get(self, request: Request, name: str) -> HttpResponseBase:
        """Return the machine; its ETag is what If-Match wants."""
        row = self._row(name)
        if wants_yaml(request):
            return yaml_answer(request, [manifest_of(describe_node(row))])
        return _tagged(dict(NodeSerializer(row, context=_use_of(request, [name])).data))

    @extend_schema(request=NodeChangeInput, responses=NodeSavedSerializer, parameters=[DRY_RUN])
    def patch(self, request: Request, name: str) -> Response:
        """Keep new pods off the machine, or let them on again; say what that means."""
        insist(actor_of(request), "may_operate")
        row = self._row(name)
        seen = seen_version(request, actor_of(request), row)
        asked = read_node_change(request.data)
        changed = replace(describe_node(row), schedulable=asked.schedulable)
        spec = NodeDrain(name) if asked.drain else changed

        def act() -> dict[str, Any]:
            user = actor_of(request).user
            saved = set_cordon(
                name,
                not asked.schedulable,
                actor=user,
                reason=asked.reason,
                drain=asked.drain,
                if_version=seen,
            )
            return dict(NodeSerializer(saved, context=_use_of(request, [name])).data)

        answer, found = carry_out(spec, act, keep=not is_dry_run(request))
        return _tagged(answer | _meaning(request, found))

    @extend_schema(responses={200: FORGOTTEN}, parameters=[DRY_RUN])
    def delete(self, request: Request, name: str) -> Response:
        """Forget the machine; what stands on it is evicted. Say what that means."""
        insist(actor_of(request), "may_operate")
        seen = seen_version(request, actor_of(request), self._row(name))

        def act() -> None:
            delete_node(name, actor=actor_of(request).user, if_version=seen)

        _nothing, found = carry_out(NodeRemoval(name), act, keep=not is_dry_run(request))
        return Response({"name": name} | _meaning(request, found))

    def _row(self, name: str) -> Node:
        return get_object_or_404(Node.objects.all(), name=name)


def _tagged(answer: dict[str, Any]) -> Response:
    return Response(answer, headers={"ETag": etag(answer["version"], answer)})


def _use_of(request: Request, names: list[str]) -> dict[str, Any]:
    """Return the context that a node's serializer wants."""
    return {"rows": {row.node.name: row for row in node_rows(actor_of(request), names)}}


def _meaning(request: Request, found: list[Diagnostic]) -> dict[str, Any]:
    told: dict[str, Any] = {"warnings": [diagnostic.as_json() for diagnostic in found]}
    return told | {"dry_run": True} if is_dry_run(request) else told
