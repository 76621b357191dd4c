"""Counters in the text format of Prometheus. Routes are templates: no id, path or content becomes a label."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

__all__ = ["Metrics"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """What this process did since it started."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.versions_expired = 0
        self.retention_runs = {"done": 0, "failed": 0}
        self._requests: dict[tuple[str, str, int], int] = {}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        key = method, route, status
        self._requests[key] = self._requests.get(key, 0) + 1
        buckets = self._buckets.get(route)
        if buckets is None:
            buckets = self._buckets[route] = [0] * (len(_BOUNDS) + 1)
        buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def render(self) -> str:
        lines = [
            "# HELP memshelf_requests_total Requests answered.",
            "# TYPE memshelf_requests_total counter",
        ]
        lines += (
            f'memshelf_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
            for (method, route, status), count in sorted(self._requests.items())
        )
        lines += (
            "# HELP memshelf_request_seconds Time from the head of a request to the end of its answer.",
            "# TYPE memshelf_request_seconds histogram",
        )
        for route, buckets in sorted(self._buckets.items()):
            totals = list(accumulate(buckets))
            lines += (
                f'memshelf_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
                for bound, total in zip((*map(str, _BOUNDS), "+Inf"), totals, strict=True)
            )
            lines.append(f'memshelf_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'memshelf_request_seconds_count{{route="{route}"}} {totals[-1]}')
        lines += (
            "# HELP memshelf_requests_in_flight Requests being answered.",
            "# TYPE memshelf_requests_in_flight gauge",
            f"memshelf_requests_in_flight {self.in_flight}",
            "# HELP memshelf_versions_expired_total Versions erased because they were past.",
            "# TYPE memshelf_versions_expired_total counter",
            f"memshelf_versions_expired_total {self.versions_expired}",
            "# HELP memshelf_retention_runs_total Times that this process looked for versions that were past.",
            "# TYPE memshelf_retention_runs_total counter",
        )
        lines += (
            f'memshelf_retention_runs_total{{outcome="{outcome}"}} {count}'
            for outcome, count in self.retention_runs.items()
        )
        return "\n".join(lines) + "\n"
