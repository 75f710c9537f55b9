"""The rows that the cost of a window rests on, but for those of single runs: one statement."""

from typing import NamedTuple

from django.db.models import Q

from finops.allocation.facts import Period, moment
from finops.metered_facts import rows_inside
from finops.models import Coverage, Price, SharedCost
from finops.models.prices import PriceUnit
from gpuplatform.common.together import instances, read_together, whole
from scheduling.models import CapacityInterval, QuotaInterval

OF_TOKENS = (PriceUnit.INPUT_MILLION, PriceUnit.OUTPUT_MILLION)


class WindowRows(NamedTuple):
    """What was there, promised, shared, and loaded of sources in a window, and what it cost.

    ``prices``: all of GPU-hours; of tokens those in force in the window, the oldest first.
    """

    capacity: list[CapacityInterval]
    quotas: list[QuotaInterval]
    prices: list[Price]
    token_prices: list[Price]
    shared: list[SharedCost]
    coverage: list[Coverage]


def read_window(window: Period) -> WindowRows:
    """Return the rows with a part in ``window``; money in its currency alone. 1 query."""
    start, end = moment(window.start), moment(window.end)
    in_force = Q(valid_to=None) | Q(valid_to__gt=start)
    prices = Price.objects.filter(currency=window.currency)
    shared = SharedCost.objects.filter(in_force, valid_from__lt=end, currency=window.currency)
    of_tokens = prices.filter(in_force, valid_from__lt=end, unit__in=OF_TOKENS)
    told = read_together(
        whole(rows_inside(CapacityInterval.objects.all(), window)),
        whole(rows_inside(QuotaInterval.objects.all(), window)),
        whole(prices.filter(unit=PriceUnit.GPU_HOUR)),
        whole(of_tokens.order_by("valid_from")),
        whole(shared.order_by("name", "valid_from")),
        whole(Coverage.objects.filter(starts_at__lt=end, ends_at__gt=start).order_by("day")),
    )
    return WindowRows(
        instances(CapacityInterval, told[0]),
        instances(QuotaInterval, told[1]),
        instances(Price, told[2]),
        instances(Price, told[3]),
        instances(SharedCost, told[4]),
        instances(Coverage, told[5]),
    )
