"""Which language an answer speaks: pages the reader's, everything for programs English.

What is stored is never a sentence in somebody's language: rows keep codes and numbers, and the
page that shows them finds the words.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import patch_vary_headers

from gpuplatform.common.http import API_PREFIX

ENGLISH = "en"
# Read by programs, wherever they stand.
MACHINES = (API_PREFIX, "/healthz", "/readyz", "/metrics", "/events/")
FOR_PEOPLE = frozenset(("", "pdf"))  # ways to ask for a page; any other is a file for programs


def known_languages() -> dict[str, str]:
    """Return the languages of the pages, each by its own name: ``{"de": "Deutsch"}``."""
    return dict(settings.LANGUAGES)


def is_page(request: HttpRequest) -> bool:
    """Return whether a person will read the answer: a page, a part of one, or a print."""
    if request.path.startswith(MACHINES):
        return False
    return request.GET.get("format", "") in FOR_PEOPLE


def language_of(request: HttpRequest) -> str:
    """Return the language of an answer.

    Of a page: what the person has chosen on the account page, else what this browser has chosen
    (a cookie, set on the page to sign in), else what it prefers (``Accept-Language``).
    """
    if not is_page(request):
        return ENGLISH
    chosen = getattr(request.user, "language", "")
    if chosen in known_languages():
        return str(chosen)
    return translation.get_language_from_request(request)


class LanguageMiddleware:
    """Answer every request in its language; stands after what knows who asks.

    Nothing stays behind for the next request of this thread: what happens outside of a request,
    tasks and commands, speaks English.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer ``request`` in its language, and say which one that is."""
        language = language_of(request)
        with translation.override(language):
            # Django's own pages and templates ask the request.
            request.LANGUAGE_CODE = language
            response = self.get_response(request)
        if is_page(request):
            patch_vary_headers(response, ("Accept-Language", "Cookie"))
        response.headers.setdefault("Content-Language", language)
        return response
