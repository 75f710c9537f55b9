"""The catalogues of the pages' languages: found in the sources, kept in ``locale``, compiled.

Django's own reader of templates and Babel's of Python find the sentences, so nothing beside the
runtime's packages is needed. Files are the same for the same sentences: no dates, no line numbers.
"""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileParser, write_po
from django.conf import settings
from django.utils.translation.template import templatize

# What speaks on a terminal.
ALWAYS_ENGLISH = frozenset(("client", "management", "migrations"))
ROOMS = ("gpuplatform", "queues", "scheduling", "finops")
KEYWORDS = {**DEFAULT_KEYWORDS, "gettext_lazy": None, "ngettext_lazy": (1, 2)}
WIDTH = 99
Key = str | tuple[str, ...]


class StableCatalogue(Catalog):
    """A catalogue whose head says only what readers of it need."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        """Return the head: no dates, no names, no versions."""
        return [
            ("Language", str(self.locale)),
            ("Plural-Forms", self.plural_forms),
            ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Transfer-Encoding", "8bit"),
        ]

    @mime_headers.setter
    def mime_headers(self, headers: object) -> None:
        """Leave the head as it is, whatever a file says."""


def languages() -> list[str]:
    """Return the languages that have a catalogue; English is what the sources are written in."""
    return [code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE]


def path_of(language: str) -> Path:
    """Return where the catalogue of a language is kept."""
    return Path(settings.BASE_DIR) / "locale" / language / "LC_MESSAGES" / "django.po"


def found_in_sources() -> set[Key]:
    """Return every sentence of the sources; one with a plural is a pair."""
    root = Path(settings.BASE_DIR)
    found: set[Key] = set()
    for path in sorted((root / "templates").rglob("*.html")):
        found.update(in_template(path.read_text(encoding="utf-8")))
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            if not ALWAYS_ENGLISH & set(path.parts):
                found.update(in_python(path.read_text(encoding="utf-8")))
    return found


def in_template(text: str) -> Iterator[Key]:
    """Yield the sentences of a template."""
    # Django turns all but the sentences into names of no meaning, indented as they stood.
    lines = templatize(text).splitlines()
    return in_python("\n".join(line.strip() for line in lines))


def in_python(text: str) -> Iterator[Key]:
    """Yield the sentences of Python."""
    if "gettext" not in text and "_(" not in text:
        return
    source = io.BytesIO(text.encode())
    for _line, found, _comments, _context in extract("python", source, KEYWORDS):
        if found:
            yield found if isinstance(found, str) else tuple(found)


def read(language: str) -> Catalog:
    """Return the catalogue of a language as it is kept; an empty one where there is none."""
    kept = StableCatalogue(locale=language, fuzzy=False, header_comment="")
    path = path_of(language)
    if path.exists():
        PoFileParser(kept).parse(path.read_text(encoding="utf-8").splitlines())
        kept.fuzzy = False
    return kept


def entries(catalogue: Catalog) -> dict[Key, Message]:
    """Return the entries by their sentence, without the head."""
    return {key_of(entry): entry for entry in catalogue if entry.id}


def key_of(entry: Message) -> Key:
    """Return the sentence of an entry, a pair where it has a plural."""
    return entry.id if isinstance(entry.id, str) else tuple(entry.id)


def renewed(language: str, found: Iterable[Key]) -> Catalog:
    """Return the catalogue of ``found``: with its translations, without what nobody says now."""
    kept = entries(read(language))
    wanted = StableCatalogue(locale=language, fuzzy=False, header_comment="")
    for key in found:
        wanted.add(key, kept[key].string if key in kept else "")
    return wanted


def as_po(catalogue: Catalog) -> bytes:
    """Return a catalogue as its source: sorted, without places."""
    text = io.BytesIO()
    write_po(text, catalogue, width=WIDTH, no_location=True, sort_output=True)
    return text.getvalue()


def as_mo(catalogue: Catalog) -> bytes:
    """Return a catalogue as gettext reads it."""
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    return compiled.getvalue()


def write(language: str, catalogue: Catalog) -> None:
    """Keep a catalogue, and what it compiles to."""
    path = path_of(language)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_po(catalogue))
    path.with_suffix(".mo").write_bytes(as_mo(read(language)))


def untranslated(catalogue: Catalog) -> list[Any]:
    """Return the sentences that have no translation, or not in every number."""
    return [
        key
        for key, entry in entries(catalogue).items()
        if entry.fuzzy or not all([entry.string] if isinstance(key, str) else entry.string or [""])
    ]
