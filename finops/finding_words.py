"""What findings of a bill say to people: numbers with their units, subjects in words.

Findings keep numbers as texts with the decimals of FORMAT.md 6 and subjects as ``name=value``;
files and REST show those. Pages show what stands here.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import reasons
from gpuplatform.common.templatetags.money import (
    gpu_hours,
    percent,
    unit_price,
    whole_number,
    with_currency,
)

MONEY = ("token_cost", "iron", "amount", "spend", "listed", "sums", "billed", "cost")
PRICES = ("declared", "resolved")
HOURS = ("hours", "gpu_hours", "scheduler", "opencost")
COUNTS = ("rows", "tokens")
RATIOS = ("ratio", "drift", "recovery")
SUBJECTS: Mapping[str, str | Promise] = {
    "model_group": _("model"),
    "cluster": _("cluster"),
    "flavor": _("flavor"),
    "lender": _("lender"),
    "namespace": _("namespace"),
    "node": _("node"),
    "queue": _("cluster queue"),
    "resource": _("resource"),
    "source": _("source"),
    "team": _("team"),
    "team_id": _("LiteLLM team"),
    "tag": _("tag"),
    "currency": _("currency"),
    "bucket": _("account"),
}
_PAIR = re.compile(r"(?:^| )([a-z_]+)=")


def finding_sentence(code: str, numbers: Mapping[str, Any], currency: str) -> str:
    """Return the sentence of a finding, money in ``currency`` and hours as people read them."""
    return reasons.sentence(code, said(numbers, currency))


def said(numbers: Mapping[str, Any], currency: str) -> dict[str, Any]:
    """Return the numbers as texts for people; what is no number stays as it is."""
    ways: tuple[tuple[tuple[str, ...], Callable[[Decimal], str]], ...] = (
        (MONEY, partial(with_currency, currency=currency)),
        (PRICES, partial(unit_price)),
        (HOURS, gpu_hours),
        (COUNTS, lambda number: whole_number(int(number))),
        (RATIOS, percent),
    )
    found = dict(numbers)
    for names, way in ways:
        for name in names:
            number = _number(found.get(name))
            if number is not None:
                found[name] = way(number)
    return found


def subject_words(subject: str) -> str:
    """Return ``model_group=llama team=ia`` as "model llama, team ia"; other texts as they are.

    What has no value (``flavor=``) is left out.
    """
    parts = _PAIR.split(subject)
    if len(parts) == 1:
        return subject
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return ", ".join(f"{SUBJECTS.get(name, name)} {value}" for name, value in pairs if value)


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
