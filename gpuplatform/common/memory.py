"""What a process that answers requests does about its memory once it is up."""

import gc

from django.urls import get_resolver


def settle() -> None:
    """Look at nothing again that is there by now: the code, the models, the URLs.

    The collector walks through all that lives whenever a page has made enough objects; of a page
    with a thousand queues that was a quarter of its time.
    """
    _ = get_resolver().url_patterns  # views are loaded with the first address that is looked for
    gc.collect()
    gc.freeze()
