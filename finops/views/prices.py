"""Pages of prices: the list, a new one, what a node should cost."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from finops import services, words
from finops.allocation.node_price import node_price, token_price
from finops.forms import NodeCostForm, PriceForm, add_problems
from finops.models import Price
from finops.models.prices import PriceUnit
from finops.selectors import prices
from gpuplatform.common import clock
from gpuplatform.common.pages import rows_response, wanted_format
from gpuplatform.common.problems import Rejected
from queues.access import actor_of, require

PRICE_COLUMNS = (
    "unit",
    "subject",
    "amount",
    "currency",
    "valid_from",
    "valid_to",
    "state",
    "source",
    "note",
)


@require()
@require_safe
def price_list(request: HttpRequest) -> HttpResponse:
    """List all prices with their validity; gaps are marked."""
    unit, subject = request.GET.get("unit", ""), request.GET.get("subject", "")[:253]
    rows = prices.price_rows(clock.now(), unit=unit, subject=subject)
    if wanted_format(request):
        return rows_response(request, "prices", PRICE_COLUMNS, map(_price_cells, rows))
    context = {
        "rows": rows,
        "units": PriceUnit.choices,
        "unit": unit,
        "subject": subject,
        "actor": actor_of(request),
    }
    return render(request, "finops/prices.html", context)


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def price_new(request: HttpRequest) -> HttpResponse:
    """Set a price; the one in force ends where it starts."""
    form = PriceForm(request.POST or None, initial=request.GET.dict())
    if form.is_valid():
        try:
            price = services.set_price(
                form.spec(), actor_of(request).user, form.cleaned_data["reason"]
            )
        except Rejected as refusal:
            add_problems(form, refusal.problems)
        else:
            messages.success(request, _price_sentence(price))
            return redirect("prices")
    status = 422 if form.is_bound else 200
    return render(request, "finops/price_form.html", {"form": form}, status=status)


@require()
@require_safe
def price_calculator(request: HttpRequest) -> HttpResponse:
    """Work out what a node's hour costs, beside the price that is declared."""
    form = NodeCostForm(request.GET or NodeCostForm.ARTICLE)
    context: dict[str, Any] = {
        "form": form,
        "actor": actor_of(request),
        "flavors": prices.flavor_names(),
    }
    if form.is_valid():
        context |= _calculated(form.cleaned_data)
    return render(request, "finops/calculator.html", context)


def _calculated(cleaned: dict[str, Any]) -> dict[str, Any]:
    declared = prices.PriceBook(clock.now()).gpu_hour(cleaned["flavor"])
    cost = cleaned["cost"]
    result = node_price(cost, declared.amount if declared else None)
    speed = cleaned["tokens_per_second"]
    declared_node = declared.amount * cost.gpus if declared else None
    return {
        "cost": cost,
        "flavor": cleaned["flavor"],
        "result": result,
        "declared": declared,
        "declared_node": declared_node,
        "speed": speed,
        "token_calculated": token_price(result.node_per_hour, speed) if speed else None,
        "token_declared": token_price(declared_node, speed) if speed and declared_node else None,
    }


def _price_cells(row: prices.PriceRow) -> dict[str, Any]:
    price = row.price
    names = ("unit", "subject", "amount", "currency", "valid_from", "valid_to", "source", "note")
    return {name: getattr(price, name) for name in names} | {"state": row.state}


def _price_sentence(price: Price) -> str:
    return _("{subject}: {amount} {currency} per {unit} from {start} on.").format(
        subject=price.subject,
        amount=price.amount.normalize(),
        currency=price.currency,
        unit=words.UNITS[price.unit],
        start=f"{price.valid_from:%Y-%m-%d %H:%M} UTC",
    )
