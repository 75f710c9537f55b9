"""Paths as people read them (``pod_sets[0].requests[cpu]``) to JSON pointers (RFC 6901). Pure."""

import re

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def pointer(path: str) -> str:
    """Return ``/pod_sets/0/requests/cpu`` for ``pod_sets[0].requests[cpu]``; "" for ""."""
    steps = (brackets or plain for brackets, plain in _STEP.findall(path))
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)
