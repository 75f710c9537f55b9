"""How a command ends: an exit code that scripts can tell apart, and sentences for people."""

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes (``product.md`` 2.2); 2, wrong usage, is given where the line is parsed."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    REJECTED = 5
    AUTH = 6
    TIMEOUT = 7
    THROTTLED = 8


OF_NO_FIELD = ("already_finished", "stale")
OF_STATUS = {
    401: Exit.AUTH,
    403: Exit.AUTH,
    404: Exit.NOT_FOUND,
    409: Exit.CONFLICT,
    412: Exit.CONFLICT,
    422: Exit.REJECTED,
    428: Exit.CONFLICT,
    429: Exit.THROTTLED,
}


class Failed(Exception):
    """A command that did not do what was asked. ``lines`` go to standard error.

    ``status`` is HTTP's, where the server refused.
    """

    status = 0

    def __init__(self, code: Exit, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.code = code
        self.lines = lines


def of_problem(status: int, body: object, request_id: str) -> Failed:
    """Return the failure that a refusal of the server means: each error with its code."""
    failure = _of_problem(status, body, request_id)
    failure.status = status
    return failure


def _of_problem(status: int, body: object, request_id: str) -> Failed:
    code = OF_STATUS.get(status, Exit.ERROR)
    if not isinstance(body, dict):
        return Failed(code, f"HTTP {status} ({request_id})")
    errors = [error for error in body.get("errors") or [] if isinstance(error, dict)]
    return Failed(code, *[_line(error) for error in errors] or [str(body.get("detail"))])


def _line(error: dict[str, object]) -> str:
    # A pointer leads to what is to be corrected in what was sent; nothing is in a conflict.
    told = error.get("pointer") and error.get("code") not in OF_NO_FIELD
    where = f" ({error['pointer']})" if told else ""
    return f"{error.get('code')}: {error.get('detail')}{where}"


def first_of(failures: Iterable[Failed]) -> Failed | None:
    """Return what several things that failed come to: all sentences, the first one's code."""
    found = list(failures)
    return Failed(found[0].code, *(line for one in found for line in one.lines)) if found else None
