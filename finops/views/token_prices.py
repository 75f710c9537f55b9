"""The page of token prices: what the iron gives, what is charged, what to write down."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from finops.allocation.node_price import token_price
from finops.forms import TokenCostForm
from finops.selectors import token_prices
from finops.selectors.prices import PriceBook
from finops.token_price_rows import COLUMNS, cells_of
from gpuplatform.common import clock
from gpuplatform.common.pages import rows_response, wanted_format
from queues.access import actor_of, demand_visible, require


@require()
@require_safe
def token_price_list(request: HttpRequest) -> HttpResponse:
    """Show models with the price that the iron gives beside what LiteLLM charges."""
    demand_visible(actor_of(request).may_see_bills)
    rows = token_prices.token_price_rows(clock.now())
    if wanted_format(request):
        return rows_response(request, "token_prices", COLUMNS, map(cells_of, rows))
    form = TokenCostForm(request.GET if "tokens_per_second" in request.GET else _defaults())
    context: dict[str, Any] = {"rows": rows, "form": form, "actor": actor_of(request)}
    if form.is_valid():
        node, speed = form.cleaned_data["node_hour"], form.cleaned_data["tokens_per_second"]
        price = token_price(node, speed)
        per_token = token_prices.per_token(price)
        context |= {"price": price, "per_token": per_token}
        context["snippet"] = token_prices.litellm_snippet("llama-3-70b-onprem", per_token)
    context["off"] = [row for row in rows if row.level in {"warning", "critical"}]
    return render(request, "finops/token_prices.html", context)


def _defaults() -> dict[str, str]:
    """Return the articles' node at the price in force, where there is just one."""
    price = PriceBook(clock.now()).only_gpu_hour()
    node = price.amount * 4 if price else 0
    return {"node_hour": f"{node or '5.60'}", "tokens_per_second": "2000"}
