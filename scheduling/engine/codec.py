"""Snapshots and plans as JSON-able values and back, for recordings, replays and golden files.

Equal values give byte-equal JSON: mappings are sorted, and every number has the type of its
field. Mappings whose keys are no strings become sorted lists of pairs. A decision carries its
kind under ``"kind"``.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from scheduling.engine.plan import Admit, Evict, Grow, Hold, Plan, Shrink
from scheduling.engine.snapshot import Memory, Snapshot

_KINDS: dict[str, type] = {
    "admit": Admit,
    "evict": Evict,
    "grow": Grow,
    "hold": Hold,
    "shrink": Shrink,
}
_KIND_OF = {kind: name for name, kind in _KINDS.items()}


def encode_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Return the snapshot as a JSON-able dict."""
    encoded: dict[str, Any] = _encode(Snapshot, snapshot)
    return encoded


def decode_snapshot(encoded: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot that was encoded. Raises KeyError or ValueError for other input."""
    decoded: Snapshot = _decode(Snapshot, encoded)
    return decoded


def encode_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON-able dict."""
    encoded: dict[str, Any] = _encode(Plan, plan)
    return encoded


def decode_plan(encoded: Mapping[str, Any]) -> Plan:
    """Return the plan that was encoded. Raises KeyError or ValueError for other input."""
    decoded: Plan = _decode(Plan, encoded)
    return decoded


def encode_memory(memory: Memory) -> dict[str, Any]:
    """Return what a cycle remembers as a JSON-able dict."""
    encoded: dict[str, Any] = _encode(Memory, memory)
    return encoded


def decode_memory(encoded: Mapping[str, Any]) -> Memory:
    """Return the memory that was encoded. Raises KeyError or ValueError for other input."""
    decoded: Memory = _decode(Memory, encoded)
    return decoded


_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def _encode(hint: Any, value: Any) -> Any:
    if is_dataclass(value):
        return _encode_dataclass(value)
    if isinstance(value, Mapping):
        return _encode_mapping(hint, value)
    if isinstance(value, tuple) and _is_named_tuple(_plain(hint)):
        hints = _hints(_plain(hint))
        return [_encode(hints[name], getattr(value, name)) for name in hints]
    if isinstance(value, tuple):
        return [_encode(inner, part) for inner, part in _parts(hint, value)]
    if isinstance(value, Enum):
        return value.value
    return float(value) if hint is float else value


def _encode_dataclass(value: Any) -> dict[str, Any]:
    hints = _hints(type(value))
    encoded = {f.name: _encode(hints[f.name], getattr(value, f.name)) for f in fields(value)}
    kind = _KIND_OF.get(type(value))
    return {**encoded, "kind": kind} if kind else encoded


def _encode_mapping(hint: Any, value: Mapping[Any, Any]) -> Any:
    key_hint, value_hint = get_args(_plain(hint))
    if key_hint is str:
        return {key: _encode(value_hint, value[key]) for key in sorted(value)}
    return [[_encode(key_hint, key), _encode(value_hint, value[key])] for key in sorted(value)]


def _decode(hint: Any, value: Any) -> Any:  # noqa: PLR0911 - one line a kind of type
    hint = _plain(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return _decode_union(value)
    if value is None or hint in (str, int, bool):
        return value
    if get_origin(hint) is not None and issubclass(get_origin(hint), Mapping):
        return _decode_mapping(hint, value)
    if hint is float:
        return float(value)
    if _is_named_tuple(hint):
        return hint(
            *(_decode(_hints(hint)[n], v) for n, v in zip(hint._fields, value, strict=True))
        )
    if get_origin(hint) is tuple:
        return tuple(_decode(inner, part) for inner, part in _parts(hint, value))
    if is_dataclass(hint):
        return _decode_dataclass(hint, value)
    return hint(value)


def _decode_union(value: Any) -> Any:
    """Decode a union: of decisions by their kind; of plain types as it stands."""
    if not isinstance(value, Mapping):
        return value
    return _decode_dataclass(_KINDS[value["kind"]], value)


def _decode_dataclass(kind: Any, value: Mapping[str, Any]) -> Any:
    """Decode one object; a field younger than the recording keeps its default."""
    hints = _hints(kind)
    known = [f.name for f in fields(kind) if f.name in value or not _has_default(f)]
    return kind(**{name: _decode(hints[name], value[name]) for name in known})


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _decode_mapping(hint: Any, value: Any) -> dict[Any, Any]:
    key_hint, value_hint = get_args(hint)
    pairs = value.items() if isinstance(value, Mapping) else value
    return {_decode(key_hint, k): _decode(value_hint, v) for k, v in pairs}


def _plain(hint: Any) -> Any:
    """Return ``X`` for ``X | None``: None needs no decoding."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [arg for arg in get_args(hint) if arg is not type(None)]
        return inner[0] if len(inner) == 1 else hint
    return hint


def _parts(hint: Any, value: Any) -> list[tuple[Any, Any]]:
    """Pair the members of a tuple with their types: ``tuple[X, ...]`` or ``tuple[X, Y]``."""
    inner = get_args(_plain(hint))
    if len(inner) == 2 and inner[1] is Ellipsis:  # noqa: PLR2004
        return [(inner[0], part) for part in value]
    return list(zip(inner, value, strict=True))


def _is_named_tuple(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")
