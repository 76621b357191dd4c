"""How many requests a key may make: a token bucket for each key and kind of request."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from memshelf.service.config import Rate

__all__ = ["Allowance", "RateLimiter"]

_MOST_BUCKETS = 20_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(frozen=True, slots=True)
class Allowance:
    """What stands in the `ratelimit-` headers. `retry_after` is set when the request is refused."""

    limit: int
    remaining: int
    reset: int
    retry_after: int | None

    @property
    def headers(self) -> dict[str, str]:
        headers = {
            "ratelimit-limit": str(self.limit),
            "ratelimit-remaining": str(self.remaining),
            "ratelimit-reset": str(self.reset),
        }
        return headers if self.retry_after is None else {**headers, "retry-after": str(self.retry_after)}


class RateLimiter:
    """One rate, for many keys."""

    def __init__(self, rate: Rate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def take(self, key: str) -> Allowance:
        """Count a request of this key, unless it comes too early."""
        rate, now = self._rate, self._clock()
        bucket = self._buckets.get(key)
        if bucket is None:
            self._make_room(now)
            bucket = self._buckets[key] = _Bucket(rate.burst, now)
        bucket.tokens = min(rate.burst, bucket.tokens + (now - bucket.at) * rate.per_second)
        bucket.at = now
        retry_after = None
        if bucket.tokens >= 1:
            bucket.tokens -= 1
        else:
            retry_after = max(1, math.ceil((1 - bucket.tokens) / rate.per_second))
        reset = math.ceil((rate.burst - bucket.tokens) / rate.per_second)
        return Allowance(rate.burst, int(bucket.tokens), reset, retry_after)

    def _make_room(self, now: float) -> None:
        if len(self._buckets) < _MOST_BUCKETS:
            return
        full_after = self._rate.burst / self._rate.per_second
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if now - bucket.at < full_after}
        if len(self._buckets) >= _MOST_BUCKETS:
            self._buckets.clear()
