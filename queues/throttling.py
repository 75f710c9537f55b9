"""How often a program may ask: a bucket for each token, and one for each person.

A bucket holds ``API_BURST`` requests and is filled with ``API_PER_S`` a second; all tokens of a
person share one of twice that size. Counted in the memory of each web process: this keeps one
program that runs wild from the others, it is no wall.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from queues.models import ApiToken

if TYPE_CHECKING:  # DRF's views import this module
    from rest_framework.views import APIView

MOST_BUCKETS = 10_000


class Buckets:
    """Requests that each key has left, as many keys as were seen last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[object, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: object, size: float, per_s: float) -> float:
        """Take one request out; return 0, or after how many seconds there is one again."""
        with self._lock:
            now = self._clock()
            left, at = self._left.get(key, (size, now))
            left = min(size, left + (now - at) * per_s)
            wait = 0.0 if left >= 1 else (1 - left) / per_s
            self._left[key] = (left - 1 if not wait else left, now)
            self._left.move_to_end(key)
            while len(self._left) > MOST_BUCKETS:
                self._left.popitem(last=False)
            return wait


buckets = Buckets()


class _Throttle(BaseThrottle):
    times = 1

    def __init__(self) -> None:
        self._wait = 0.0

    def key(self, request: Request) -> object:
        """Return whose bucket it is; None: nobody's."""
        raise NotImplementedError

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Return whether there is a request left."""
        del view
        key = self.key(request)
        if settings.API_PER_S <= 0 or key is None:
            return True
        size, per_s = settings.API_BURST * self.times, settings.API_PER_S * self.times
        self._wait = buckets.take(key, size, per_s)
        return not self._wait

    def wait(self) -> float:
        """Return after how many whole seconds it may be tried again."""
        return float(math.ceil(self._wait))


class PerToken(_Throttle):
    """One bucket for each token."""

    def key(self, request: Request) -> object:
        """Return the token."""
        return ("token", request.auth.pk) if isinstance(request.auth, ApiToken) else None


class PerUser(_Throttle):
    """One bucket for each person, whatever they sign in with."""

    times = 2

    def key(self, request: Request) -> object:
        """Return the person; strangers are refused anyway."""
        return ("user", request.user.pk) if request.user.pk else None
