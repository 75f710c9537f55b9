"""JSON of other systems, read strictly. Pure."""

from hashlib import sha256
from typing import Any

import msgspec

from finops.sources.failures import SAID, SourceError


def decoded(body: bytes, shape: Any) -> Any:
    """Return a JSON body as ``shape``. NaN, Infinity, a cut text and another shape are refused.

    Raises:
        SourceError: with the length and the hash of the body, for the one who looks for it.
    """
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        raise SourceError("SOURCE_WRONG_SHAPE", problem=str(error)[:SAID]) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(
            "SOURCE_BROKEN_ANSWER",
            problem=str(error)[:SAID],
            bytes=len(body),
            sha256=sha256(body).hexdigest(),
        ) from error
