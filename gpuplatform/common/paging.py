"""Lists over REST: bounded pages by cursor, and no parameter is ignored in silence."""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import MethodNotAllowed, NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuplatform.common.later import keep_for_later, wants_later
from gpuplatform.common.lists import LISTED, chosen_ordering, narrow, wanted_fields, wants_count
from gpuplatform.common.once import given_key, once
from gpuplatform.common.rest_shapes import page_of

DEFAULT_LIMIT, MOST = 50, 500
PAGES = ("cursor", "limit", *LISTED)  # what a list knows
MOST_SHOWN = 80  # characters of a name that an answer repeats
TRUTHS = {"true": True, "false": False}


class NewestFirst(CursorPagination):
    """Pages by ``created_at``, newest first; ``?limit=`` up to 500, ``?cursor=`` as linked."""

    ordering: Any = ("-created_at", "uid")
    page_size = DEFAULT_LIMIT
    page_size_query_param = "limit"
    max_page_size = MOST

    total: int | None = None  # where it was asked for

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> Any:
        """Return the rows of the page; count them all where that is asked for."""
        self.total = queryset.count() if wants_count(request) else None
        return super().paginate_queryset(queryset, request, view)

    def get_paginated_response(self, data: Any) -> Response:
        """Return the page with the links to its neighbours."""
        response = super().get_paginated_response(data)
        if self.total is not None:
            response.data["count"] = self.total
        return response

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the shape of a page of rows, which together have the shape ``schema``."""
        return page_of(schema["items"])

    def get_ordering(
        self, request: Request, queryset: QuerySet[Any], view: Any
    ) -> tuple[str, ...]:
        """Return the order that was asked for, with a last key that leaves no tie."""
        del queryset
        known: tuple[str, ...] = getattr(view, "orderings", ()) or (self.ordering[0].lstrip("-"),)
        asked = chosen_ordering(request, known)
        usual = tuple(self.ordering)
        own = asked.removeprefix("-")
        return (asked, *(k for k in usual if k.removeprefix("-") != own)) if asked else usual

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Return where the page begins.

        Raises:
            ValidationError: 400, the cursor is not one that a page linked to.
        """
        given = request.query_params.get(self.cursor_query_param)
        try:
            cursor = super().decode_cursor(request)
        except NotFound:
            raise _damaged() from None
        # Base64 is read leniently; only what we would write ourselves is whole.
        if given is not None and (cursor is None or given != _encoded(cursor)):
            raise _damaged()
        return cursor


def _encoded(cursor: Cursor) -> str:
    """Return ``cursor`` as DRF writes it into a link."""
    position = cursor.position
    parts = [("o", str(cursor.offset))] if cursor.offset else []
    parts += [("r", "1")] if cursor.reverse else []
    parts += [("p", str(position))] if position is not None and "\0" not in str(position) else []
    return b64encode(urlencode(parts).encode("ascii")).decode("ascii") if parts else "-"


def _damaged() -> ValidationError:
    return ValidationError({"cursor": [_("This cursor is damaged; begin with the first page.")]})


class ByName(NewestFirst):
    """Pages by name."""

    ordering: Any = ("name",)


class CheckedView(APIView):
    """A REST view that refuses every parameter it does not name.

    ``parameters`` are those of each method; ``format`` may be ``json`` where something is read.
    A POST with an ``Idempotency-Key`` is answered once (``gpuplatform.common.once``). The methods
    of ``later`` may be answered later (``gpuplatform.common.later``).
    """

    parameters: ClassVar[Mapping[str, Iterable[str]]] = {}
    scopes: ClassVar[Mapping[str, str]] = {}
    later: ClassVar[tuple[str, ...]] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the parameters once it is known that somebody may ask at all."""
        self._check_method(request)
        wanted = request.query_params.get("format")
        known = {renderer.format for renderer in self.renderer_classes}
        if wanted is not None and (request.method not in SAFE_METHODS or wanted not in known):
            raise ValidationError({"format": [_("There is no such format here.")]})
        super().initial(request, *args, **kwargs)
        method = "GET" if request.method in SAFE_METHODS else str(request.method)
        check_parameters(request, ("format", *self.parameters.get(method, ())))
        if wants_later(request, self):
            setattr(self, str(request.method).lower(), self._kept_for_later)
        if key := given_key(request):
            handler: Any = getattr(self, "post")  # noqa: B009  # of the view below this class
            self.post = once(handler, key)

    def _kept_for_later(self, request: Request, **_parts: Any) -> Response:
        return keep_for_later(request, self.scopes.get(str(request.method), "read"))

    def _check_method(self, request: Request) -> None:
        """Say so where nobody may ask like this, before anything else is found wrong with it."""
        method = str(request.method)
        is_known = method.lower() in self.http_method_names and hasattr(self, method.lower())
        if request.user.is_authenticated and not is_known:
            raise MethodNotAllowed(method)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Leave out the fields that a reader of a list does not want."""
        if isinstance(response, Response) and not response.exception:
            try:
                narrow(request, response)
            except ValidationError as error:
                response = self.handle_exception(error)
        return super().finalize_response(request, response, *args, **kwargs)


def check_parameters(request: Request, known: Iterable[str]) -> None:
    """Refuse parameters that mean nothing here, and a limit that is no number from 1 to 500.

    Raises:
        ValidationError: 400, each with its name.
    """
    allowed = set(known)
    words = _("There is no such parameter here; known are {known}.")
    words = words.format(known=", ".join(sorted(allowed)) or _("none"))
    wrong: dict[str, list[str]] = {
        name[:MOST_SHOWN]: [words] for name in request.query_params if name not in allowed
    }
    limit = request.query_params.get("limit") if "limit" in allowed else None
    if limit is not None and not (limit.isascii() and limit.isdecimal() and _within(limit)):
        wrong["limit"] = [_("A limit lies between 1 and {most}.").format(most=MOST)]
    if wrong:
        raise ValidationError(wrong)
    if "brief" in allowed:
        wanted_fields(request)
    if "count" in allowed:
        wants_count(request)


def truth(request: Request, name: str) -> bool | None:
    """Return a parameter that is ``true`` or ``false``; None where it is absent.

    Raises:
        ValidationError: 400, any other value.
    """
    value = request.query_params.get(name)
    if value is not None and value not in TRUTHS:
        raise ValidationError({name: [_("It is either true or false.")]})
    return None if value is None else TRUTHS[value]


def chosen(request: Request, name: str, values: Iterable[str]) -> str:
    """Return a parameter that takes one of a few words; "" where it is absent.

    Raises:
        ValidationError: 400, any other word; an empty list would be taken for the truth.
    """
    value, known = request.query_params.get(name, ""), list(values)
    if value and value not in known:
        words = _("It is one of {known}.").format(known=", ".join(known))
        raise ValidationError({name: [words]})
    return value


def _within(limit: str) -> bool:
    return len(limit) <= len(str(MOST)) and 1 <= int(limit) <= MOST
