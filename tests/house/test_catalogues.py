"""What the pages say stands in every catalogue, translated, with the same places to fill."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from gpuplatform.common import catalogues

LANGUAGES = catalogues.languages()
# ``%(name)s``, ``{name}`` and ``{name:,}``, ``%s``; a lone per cent sign is doubled.
PLACES = re.compile(r"%\(\w+\)[sd]|\{\w*[^{}]*\}|%[sd%]")
TAGS = re.compile(r"</?[a-z][^<>]*>")


@cache
def found() -> frozenset[catalogues.Key]:
    return frozenset(catalogues.found_in_sources())


@cache
def entries(language: str) -> dict[catalogues.Key, Any]:
    return catalogues.entries(catalogues.read(language))


def pairs(language: str) -> Iterator[tuple[str, str]]:
    """Every translated sentence beside its translation, each number of a plural on its own."""
    for key, entry in entries(language).items():
        if isinstance(key, str):
            yield key, entry.string
        else:
            yield from ((key[1], said) for said in entry.string[1:])
            yield key[0], entry.string[0]


def test_sentences_are_found_in_templates_and_in_python() -> None:
    html = (
        '  <p title="{% translate "A & \'b\'" %}">{{ x|default:_("none") }}</p>\n'
        " {% blocktranslate count n=n trimmed %}\n one {{ n }} %\n"
        " {% plural %} many {{ n }} {% endblocktranslate %}\n</p>"
    )
    said = {"A & 'b'", "none", ("one %(n)s %%", "many %(n)s")}
    assert set(catalogues.in_template(html)) == said
    code = 'from x import gettext as _\nA = _("a" " b")\nB = ngettext("n", "ns", 2)\nC = "no"\n'
    assert set(catalogues.in_python(code)) == {"a b", ("n", "ns")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_holds_what_the_sources_say_and_nothing_else(language: str) -> None:
    # Not so? `make messages`, then translate what it lists.
    assert set(entries(language)) ^ found() == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_is_compiled_as_it_is_written(language: str) -> None:
    kept = catalogues.read(language)
    assert catalogues.path_of(language).read_bytes() == catalogues.as_po(kept)
    compiled = catalogues.path_of(language).with_suffix(".mo").read_bytes()
    assert compiled == catalogues.as_mo(kept)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_is_translated(language: str) -> None:
    assert catalogues.untranslated(catalogues.read(language)) == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("pattern", [PLACES, TAGS], ids=["places", "tags"])
def test_a_translation_has_the_places_and_the_tags_of_its_sentence(
    language: str, pattern: re.Pattern[str]
) -> None:
    def differs(said: str, translated: str) -> bool:
        return Counter(pattern.findall(said)) != Counter(pattern.findall(translated))

    assert [pair for pair in pairs(language) if pair[1] and differs(*pair)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_begins_and_ends_as_its_sentence_does(language: str) -> None:
    """Pages put sentences together: spaces at an edge, a full stop and a colon belong to them."""

    def edges(text: str) -> tuple[bool, ...]:
        ends = tuple(text.rstrip().endswith(mark) for mark in ".:?…")
        return text.startswith(" "), text.endswith(" "), text.count("\n") > 0, *ends

    assert [pair for pair in pairs(language) if pair[1] and edges(pair[0]) != edges(pair[1])] == []
