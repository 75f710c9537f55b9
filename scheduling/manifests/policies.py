"""Volcano's policies: what becomes of a job when something happens to its pods (1.12).

Read are the events PodFailed, PodEvicted, TaskCompleted and ``*`` or one exit code, with the
actions that are about the whole job. Anything else is refused: a policy that is kept and not
followed would be worse than none.
"""

from typing import Any

from gpuplatform.common.fields import Fields
from scheduling.verdicts import Action, Event, Policy

RUNTIME_EVENTS = (Event.EVICTED.value, Event.ANY.value)
ANY_NAMES = ("*", "AnyEvent")
MOST_CODE = 255
EVENTS = tuple(event.value for event in Event)
ACTIONS = tuple(action.value for action in Action)


def read_policies(row: Fields, pod_set: str = "") -> list[dict[str, Any]]:
    """Return the policies of a job, or of one task, as they are stored."""
    found: list[Policy] = []
    seen: set[str] = set()
    rows = row.children("policies")
    for policy in rows:
        read = _policy(policy, pod_set, seen)
        if read is not None:
            found.append(read)
        policy.close()
    if "*" in seen and len(rows) > 1:
        row.report("POLICY_ANY_ALONE", "policies")
    return [policy.as_json() for policy in found]


def _policy(policy: Fields, pod_set: str, seen: set[str]) -> Policy | None:
    named = [policy.text("event"), *policy.texts("events")]
    events = [Event.ANY.value if name in ANY_NAMES else name for name in named if name]
    code, action = policy.integer("exitCode", maximum=MOST_CODE), policy.text("action")
    policy.not_honoured("timeout")
    if bool(events) == (code is not None):
        policy.report("POLICY_EVENT_OR_CODE")
        return None
    if code == 0:
        policy.report("POLICY_EXIT_CODE_ZERO", "exitCode")
    unknown = [event for event in events if event not in EVENTS]
    for event in unknown:
        policy.report("POLICY_EVENT", "event", event=event[:64], allowed=", ".join(EVENTS))
    if action not in ACTIONS:
        policy.report("POLICY_ACTION", "action", action=action[:64], allowed=", ".join(ACTIONS))
    _note_twice(policy, events if code is None else [str(code)], seen)
    if unknown or action not in ACTIONS:
        return None
    if action == Action.RESTART and any(event in RUNTIME_EVENTS for event in events):
        policy.report("RESTART_WITHOUT_MIN_RUNTIME", "event")
    return Policy(Action(action), tuple(Event(event) for event in events), code, pod_set)


def _note_twice(policy: Fields, keys: list[str], seen: set[str]) -> None:
    for key in keys:
        if key in seen:
            policy.report("POLICY_TWICE", "event", event=key[:64])
        seen.add(key)


def read_stored(fields: Fields) -> list[dict[str, Any]]:
    """Return policies that were exported as they are stored."""
    found = [_stored(row) for row in fields.children("policies")]
    return [policy.as_json() for policy in found if policy is not None]


def _stored(row: Fields) -> Policy | None:
    names, action = row.texts("events"), row.text("action")
    code, pod_set = row.integer("exit_code", maximum=MOST_CODE), row.text("pod_set")
    row.close()
    for event in (name for name in names if name not in EVENTS):
        row.report("POLICY_EVENT", "events", event=event[:64], allowed=", ".join(EVENTS))
        return None
    if action not in ACTIONS:
        row.report("POLICY_ACTION", "action", action=action[:64], allowed=", ".join(ACTIONS))
        return None
    if bool(names) == (code is not None):
        row.report("POLICY_EVENT_OR_CODE")
        return None
    return Policy(Action(action), tuple(Event(name) for name in names), code, pod_set)
