"""What a reason is: the shape of an entry of the registry. Pure."""

from dataclasses import dataclass

from django.utils.functional import Promise

ERROR, WARNING, INFO = "error", "warning", "info"


@dataclass(frozen=True, slots=True)
class Reason:
    """What a code says and how serious it is. ``next_step`` is what would help, or "".

    ``short`` is said instead where some number of the sentence is not known.
    """

    severity: str
    sentence: str | Promise
    next_step: str | Promise = ""
    short: str | Promise = ""
