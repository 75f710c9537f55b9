"""Bring the catalogues of the languages up to what the sources say."""

from typing import Any

from django.core.management.base import BaseCommand

from gpuplatform.common import catalogues


class Command(BaseCommand):
    """Find the sentences, keep their translations, compile."""

    help = "Renew locale/*/LC_MESSAGES/django.po and .mo; say what is not translated yet."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Write the files of every language."""
        found = catalogues.found_in_sources()
        for language in catalogues.languages():
            renewed = catalogues.renewed(language, found)
            catalogues.write(language, renewed)
            lacking = catalogues.untranslated(renewed)
            self.stdout.write(f"{language}: {len(found)} sentences, {len(lacking)} to translate")
            for key in sorted(map(str, lacking))[:20]:
                self.stdout.write(f"  {key}")
