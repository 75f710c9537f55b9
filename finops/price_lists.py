"""All prices as one document of our own, ``PriceList``, and back."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings

from finops.models import Price
from finops.models.prices import PriceUnit
from finops.specs import PriceSpec
from gpuplatform.common.fields import KEPT, Fields
from gpuplatform.common.manifests import Document, Reading
from gpuplatform.common.money import plain
from gpuplatform.common.periods import is_day
from queues.manifests.own import VERSION
from queues.manifests.reading import open_document

KIND = "PriceList"


def price_list(rows: Iterable[Price]) -> dict[str, Any]:
    """Return the document that declares these prices, each over its window."""
    listed = [
        {
            "unit": row.unit,
            "subject": row.subject,
            "amount": plain(row.amount),
            "currency": row.currency,
            "validFrom": row.valid_from.isoformat(),
            **({"validTo": row.valid_to.isoformat()} if row.valid_to else {}),
            "source": row.source,
            **({"note": row.note} if row.note else {}),
        }
        for row in rows
    ]
    named = {"apiVersion": VERSION, "kind": KIND, "metadata": {"name": "prices"}}
    return {**named, "spec": {"prices": listed}}


def read_price_list(document: Document) -> Reading:
    """Read a PriceList."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec", required=True)
    reading.specs += [_price(row) for row in spec.children("prices", required=True)]
    spec.close()
    fields.close()
    return reading


def _price(row: Fields) -> PriceSpec:
    amount = row.decimal("amount")
    if amount is None:
        row.report("REQUIRED", "amount")
    spec = PriceSpec(
        unit=row.choice("unit", PriceUnit.values, PriceUnit.GPU_HOUR.value),
        subject=row.text("subject", required=True),
        amount=amount or Decimal(0),
        currency=row.text("currency", settings.CURRENCY),
        valid_from=_instant(row, "validFrom"),
        valid_to=_instant(row, "validTo"),
        source=row.text("source", "declared")[:KEPT],
        note=row.text("note"),
    )
    row.close()
    return spec


def _instant(row: Fields, key: str) -> datetime | None:
    text = row.text(key)
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        found = None
    if text and (found is None or found.tzinfo is None or not is_day(found)):
        row.report("BAD_VALUE", key, value=text[:KEPT], allowed="2026-06-01T12:00:00Z")
        return None
    return found
