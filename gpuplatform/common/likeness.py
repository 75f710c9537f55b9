"""Which name was meant, where there is none of the name that was given. Pure."""

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 253  # characters of a name that are compared


def nearest_name(given: str, known: Iterable[str]) -> str:
    """Return the known name that is nearest to what was given, "" where none is near.

    Case does not count. Callers pass the names that their reader may see, and no others.
    """
    names = {name.lower(): name for name in sorted(known, reverse=True)}
    found = get_close_matches(given[:LONGEST].lower(), sorted(names), n=1)
    return names[found[0]] if found else ""
