"""Which names of other teams stand in an answer."""

import re
from collections.abc import Mapping

from tests.matrix.world import CODES, KINDS, PARTNERS, uid

# What is random in an answer and might hold anything.
NOISE = re.compile(
    r'(csrfmiddlewaretoken" value|"X-CSRFToken": |nonce|data-request-id|"request_id")\S*', re.ASCII
)
Found = set[tuple[str, str]]  # (team, kind of name)


def names_in(text: str) -> Found:
    """Return whose names of which kind stand in a text."""
    text = NOISE.sub("", text).lower()
    found: Found = set()
    for team, code in CODES.items():
        kinds = re.findall(rf"{code}-?([a-z]*)", text)
        found |= {(team, kind) for kind in kinds}
        if re.search(rf"(?<![a-z0-9]){team}(?![a-z0-9])", text):
            found.add((team, "team"))
        found |= {(team, f"uid of {kind}") for kind in KINDS if str(uid(team, kind)) in text}
    return found


def foreign_in(text: str, team: str | None, allowed: Mapping[str, str]) -> Found:
    """Return the names that somebody of ``team`` must not read; partners' may be ``allowed``."""
    partners = PARTNERS.get(team or "", set())
    return {
        (owner, kind)
        for owner, kind in names_in(text)
        if owner != team and not (owner in partners and kind in allowed)
    }
