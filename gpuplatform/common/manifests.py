"""Manifests as untrusted text: bounded, safe YAML or JSON to documents with line numbers. Pure.

Scalars are JSON-like: ``no`` and ``1e`` stay strings (no Norway problem), quoted text is text.
Anchors, aliases, explicit tags and duplicate keys are refused, so that a document means exactly
what it shows. How a document's fields are read stands in :mod:`gpuplatform.common.fields`.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import Fields
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.reasons import sentence

MAX_BYTES = 1024 * 1024
MAX_DOCUMENTS = 100
MAX_DEPTH = 40  # a pod template nests 12 deep
MAX_NODES = 500_000
MAX_DIGITS = 30
DEFAULT_NAMESPACE = "default"
NAMESPACED = frozenset(
    (
        *("LocalQueue", "PodGroup", "Job", "Pod", "Deployment", "StatefulSet", "Workload"),
        *("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob", "TrainJob"),
        *("RayJob", "RayCluster", "RayService", "JobSet", "LeaderWorkerSet", "AppWrapper"),
        "SparkApplication",
    )
)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

__all__ = ["Document", "Fields", "Reading", "load_documents"]


@dataclass(frozen=True, slots=True)
class Document:
    """One manifest. ``line`` counts from 1; ``kind`` is "" where the document names none."""

    index: int
    line: int
    api_version: str
    kind: str
    name: str
    namespace: str
    body: dict[str, Any]

    @property
    def subject(self) -> str:
        """Return ``Kind/name``, or ``Kind/namespace/name`` where the kind lives in one."""
        parts = [self.kind, self.namespace, self.name]
        return "/".join(parts if self.kind in NAMESPACED else parts[::2])

    @property
    def path(self) -> str:
        """Return where the document stands in the submission: ``documents[1]``."""
        return f"documents[{self.index}]"

    def fields(self, diagnostics: list[Diagnostic]) -> Fields:
        """Return the body as checked fields that report into ``diagnostics``."""
        return Fields(self.body, self.subject, diagnostics)


@dataclass(slots=True)
class Reading:
    """What a reader made of documents: specs in order, and everything worth saying."""

    specs: list[Any] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def load_documents(text: str | bytes) -> list[Document]:
    """Return the documents of ``text`` (YAML with several documents, or JSON).

    A ``kind: List`` counts as its items; empty documents are left out.

    Raises:
        Rejected: too large, not YAML, or not made of mappings; the path names document and line.
    """
    decoded = _decoded(text)
    roots = _roots_of_json(decoded) or _roots_of_yaml(decoded)
    documents = [_document(*root) for root in _flattened(roots)]
    if len(documents) > MAX_DOCUMENTS:
        raise _refusal("TOO_MANY_DOCUMENTS", "", limit=MAX_DOCUMENTS)
    if not documents:
        raise _refusal("EMPTY_SUBMISSION", "")
    return documents


def _refusal(code: str, path: str, **numbers: str | int) -> Rejected:
    return Rejected([Problem(path, code, sentence(code, {"path": path, **numbers}), numbers)])


def _decoded(text: str | bytes) -> str:
    """Return the text as characters, within bounds."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > MAX_BYTES:
        raise _refusal("TOO_LARGE", "", limit=MAX_BYTES)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refusal("BAD_SYNTAX", "", line=1, problem="not UTF-8") from error


# ---- JSON ------------------------------------------------------------------------------------
def _roots_of_json(text: str) -> list[tuple[int, int, Any]]:
    """Return the document if the text is JSON, else nothing: YAML then has its turn."""
    if not text.lstrip().startswith("{"):
        return []
    try:
        root = parse_json(text)
    except ValueError:
        return []
    return [(0, 1, root)]


def parse_json(text: str) -> Any:
    """Return the JSON value of ``text`` within the bounds that manifests have.

    Raises:
        ValueError: not JSON, a number that is none, or endless.
        Rejected: a duplicate key, a text that cannot be stored, or nested too deeply.
    """
    try:
        root = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_number,
        )
    except RecursionError as error:
        raise _refusal("TOO_DEEP", "", limit=MAX_DEPTH) from error
    _check_tree(root)
    return root


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _refusal("DUPLICATE_KEY", "", line=1, key=twice[:64])
    return found


def _check_tree(root: Any) -> None:
    """Hold JSON to the bounds that the YAML reader checks on its way."""
    level = [root]
    for _depth in range(MAX_DEPTH):
        if any(isinstance(value, str) and _UNSTORABLE.search(value) for value in level):
            raise _refusal("BAD_TEXT", "", line=1)
        level = [child for value in level for child in _children(value)]
        if not level:
            return
    raise _refusal("TOO_DEEP", "", limit=MAX_DEPTH)


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else ()


# ---- YAML ------------------------------------------------------------------------------------
def _roots_of_yaml(text: str) -> list[tuple[int, int, Any]]:
    composer = _Composer(text)
    try:
        return list(composer.documents())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = str(error.problem or error.context or "unreadable")[:120]
        raise _refusal("BAD_SYNTAX", composer.path, line=line, problem=problem) from error
    except yaml.YAMLError as error:
        problem = str(error).partition("\n")[0][:120]
        raise _refusal("BAD_SYNTAX", composer.path, line=1, problem=problem) from error


class _Composer:
    """Builds values from the parser's events, so that every bound holds while reading."""

    def __init__(self, text: str) -> None:
        self.events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self.index = 0  # of the document that is being read; empty ones do not count
        self.nodes = 0

    @property
    def path(self) -> str:
        """Return the document that is being read."""
        return f"documents[{self.index}]"

    def documents(self) -> Iterator[tuple[int, int, Any]]:
        """Yield (index, line, value) of each document that holds something."""
        seen = 0
        for event in self.events:
            if not isinstance(event, yaml.DocumentStartEvent):
                continue
            seen += 1
            if seen > MAX_DOCUMENTS:
                raise _refusal("TOO_MANY_DOCUMENTS", "", limit=MAX_DOCUMENTS)
            first = next(self.events)
            root = self._value(first, 0)
            if root is not None:
                yield self.index, first.start_mark.line + 1, root
                self.index += 1

    def _value(self, event: Any, depth: int) -> Any:
        self._check(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(depth)
        return self._mapping(depth)

    def _check(self, event: Any, depth: int) -> None:
        self.nodes += 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self._refused("ANCHOR", event)
        if event.tag is not None and event.tag != "!":
            raise self._refused("TAG", event)
        if depth >= MAX_DEPTH:
            raise self._refused("TOO_DEEP", event, limit=MAX_DEPTH)
        if self.nodes > MAX_NODES:
            raise self._refused("TOO_LARGE", event, limit=MAX_BYTES)

    def _refused(self, code: str, event: Any, **numbers: str | int) -> Rejected:
        line = event.start_mark.line + 1
        return _refusal(code, self.path, line=line, **numbers)

    def _sequence(self, depth: int) -> list[Any]:
        found = []
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            found.append(self._value(event, depth + 1))
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent):
                raise self._refused("BAD_KEY", event)
            self._check(event, depth)
            key = self._text(event)
            if key in found:
                raise self._refused("DUPLICATE_KEY", event, key=key[:64])
            found[key] = self._value(next(self.events), depth + 1)
        return found

    def _text(self, event: Any) -> str:
        if _UNSTORABLE.search(event.value):
            raise self._refused("BAD_TEXT", event)
        return str(event.value)

    def _scalar(self, event: Any) -> Any:
        text = self._text(event)
        if not event.implicit[0]:  # quoted or a block: it is text
            return text
        try:
            return _plain(text)
        except ValueError as error:
            raise self._refused("BAD_NUMBER", event, value=text[:40]) from error


def _plain(text: str) -> Any:
    """Return what an unquoted scalar means in JSON, else the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    return _number(text) if _FLOAT.fullmatch(text) else text


def is_plain_text(text: str) -> bool:
    """Return whether ``text`` without quotation marks is read as that text."""
    try:
        return isinstance(_plain(text), str)
    except ValueError:
        return False


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError("too many digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


# ---- documents -------------------------------------------------------------------------------
def _flattened(roots: list[tuple[int, int, Any]]) -> Iterator[tuple[int, int, Any]]:
    """Yield every document once, Lists opened, numbered in order."""
    index = 0
    for position, line, root in roots:
        if not isinstance(root, dict):
            raise _refusal("NOT_A_MAPPING", f"documents[{position}]", line=line)
        is_list = root.get("kind") == "List" and isinstance(root.get("items"), list)
        for item in root["items"] if is_list else [root]:
            if not isinstance(item, dict):
                raise _refusal("NOT_A_MAPPING", f"documents[{index}]", line=line)
            yield index, line, item
            index += 1


def _document(index: int, line: int, body: dict[str, Any]) -> Document:
    problems: list[Diagnostic] = []
    path = f"documents[{index}]"
    top = Fields(body, path, problems)
    meta = top.child("metadata")
    document = Document(
        index=index,
        line=line,
        api_version=top.text("apiVersion"),
        kind=top.text("kind"),
        name=meta.text("name"),
        namespace=meta.text("namespace") or DEFAULT_NAMESPACE,
        body=body,
    )
    if problems:
        raise Rejected([problem.as_problem(path) for problem in problems])
    return document
