"""Pages of prices: the list, a new one, what a node should cost."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from finops import services, words
from finops.allocation.node_price import node_price, token_price
from finops.dated import is_taken_back
from finops.forms import NodeCostForm, PriceEndForm, PriceForm
from finops.models import BillingPeriod, Price
from finops.models.prices import PriceUnit
from finops.selectors import prices
from gpuplatform.common import clock
from gpuplatform.common.money import plain
from gpuplatform.common.narrowing import narrowing, refused
from gpuplatform.common.pages import rows_response, wanted_format
from gpuplatform.common.periods import month
from gpuplatform.common.problems import Rejected
from queues.access import actor_of, demand_visible, require
from queues.forms import add_problems

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
    demand_visible(actor_of(request).may_see_prices)
    asks = narrowing(request, ("unit", "subject"), choices={"unit": PriceUnit.values})
    if refusal := refused(request, asks.told):
        return refusal
    unit, subject = asks.wanted["unit"], asks.wanted["subject"][:253]
    rows = [] if asks.told else prices.price_rows(clock.now(), unit=unit, subject=subject)
    if wanted_format(request):
        return rows_response(request, "prices", PRICE_COLUMNS, map(_price_cells, rows))
    context = {
        "rows": rows,
        "units": PriceUnit.choices,
        "unit": unit,
        "subject": subject,
        "asks": asks,
        "not_understood": asks.told,
        "actor": actor_of(request),
    }
    return render(request, "finops/prices.html", context)


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def price_new(request: HttpRequest) -> HttpResponse:
    """Set a price; the one in force ends where it starts. Reaching back asks once more."""
    form = PriceForm(request.POST or None, initial=request.GET.dict())
    months: list[BillingPeriod] = []
    if form.is_valid():
        spec = form.spec()
        months = prices.months_reached_back(spec.valid_from, spec.valid_to, clock.now())
        try:
            services.check_price(spec)
            if _is_confirmed(request, months):
                reason = form.cleaned_data["reason"]
                price = services.set_price(spec, actor_of(request).user, reason)
                return _done(request, _price_sentence(price), months)
        except Rejected as refusal:
            add_problems(form, refusal.problems)
    return _price_page(request, "finops/price_form.html", form, months)


@require(lambda actor: actor.may_price)
@require_http_methods(["GET", "HEAD", "POST"])
def price_end(request: HttpRequest, pk: int) -> HttpResponse:
    """End a price, with a reason; what is used afterwards has no price of its own.

    One that is still to come is taken back, and the one before it goes on.
    """
    now = clock.now()
    price = prices.price_to_end(pk, now)
    if price is None:
        raise Http404
    form = PriceEndForm(request.POST or None, begins_at=price.valid_from)
    months: list[BillingPeriod] = []
    if form.is_valid():
        ends_at, reason = form.cleaned_data["valid_to"], form.cleaned_data["reason"]
        months = prices.months_reached_back(ends_at, price.valid_to, now)
        try:
            if not is_taken_back(price, ends_at, now):
                services.check_end(price, ends_at or now)
            if _is_confirmed(request, months):
                ended = services.end_price(pk, actor_of(request).user, reason, ends_at)
                return _done(request, _end_sentence(ended), months)
        except Rejected as refusal:
            add_problems(form, refusal.problems)
    return _price_page(request, "finops/price_end.html", form, months, price)


def _is_confirmed(request: HttpRequest, months: Sequence[BillingPeriod]) -> bool:
    """Return whether the actor has seen that just these open months will change."""
    return request.POST.get("confirm", "") == _named(months)


def _named(months: Iterable[BillingPeriod]) -> str:
    return " ".join(period.name for period in months)


def _done(request: HttpRequest, sentence: str, months: Sequence[BillingPeriod]) -> HttpResponse:
    if months:
        rebuilt = _("Being made anew: {months}.").format(months=", ".join(_named(months).split()))
        sentence = f"{sentence} {rebuilt}"
    messages.success(request, sentence)
    return redirect("prices")


def _price_page(
    request: HttpRequest,
    template: str,
    form: forms.Form,
    months: Sequence[BillingPeriod],
    price: Price | None = None,
) -> HttpResponse:
    """Show a form of a price: empty, with what is wrong, or asking about open months."""
    asks = bool(months) and not form.errors
    context = {
        "form": form,
        "price": price,
        "months": [(one, month(one.name, one.time_zone)) for one in months] if asks else [],
        "confirm": _named(months),
    }
    status = 422 if form.is_bound and form.errors else 200
    return render(request, template, context, status=status)


@require()
@require_safe
def price_calculator(request: HttpRequest) -> HttpResponse:
    """Work out what a node's hour costs, beside the price that is declared."""
    demand_visible(actor_of(request).may_see_prices)
    form = NodeCostForm(request.GET or _article_node())
    context: dict[str, Any] = {"form": form, "actor": actor_of(request)}
    if form.is_valid():
        context |= _calculated(form.cleaned_data)
    return render(request, "finops/calculator.html", context)


def _article_node() -> dict[str, str]:
    """Return the node that the form starts with, beside the price that is nearest to its own."""
    gpu_hour = node_price(NodeCostForm.article_cost()).gpu_hour
    flavor = prices.flavor_to_compare(clock.now(), gpu_hour)
    return NodeCostForm.ARTICLE | {"flavor": flavor}


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


def _end_sentence(price: Price) -> str:
    if price.valid_to == price.valid_from:
        said = _("{subject}: {amount} {currency} is taken back; nothing was billed by it.")
        return said.format(
            subject=price.subject, amount=plain(price.amount), currency=price.currency
        )
    return _("{subject}: {amount} {currency} ends at {end} UTC.").format(
        subject=price.subject,
        amount=plain(price.amount),
        currency=price.currency,
        end=f"{price.valid_to:%Y-%m-%d %H:%M}",
    )


def _price_sentence(price: Price) -> str:
    return _("{subject}: {amount} {currency} per {unit} from {start} on.").format(
        subject=price.subject,
        amount=plain(price.amount),
        currency=price.currency,
        unit=words.UNITS[price.unit],
        start=f"{price.valid_from:%Y-%m-%d %H:%M} UTC",
    )
