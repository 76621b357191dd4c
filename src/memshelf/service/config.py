"""Every number and switch of the service."""

from __future__ import annotations

from dataclasses import dataclass, field

from memshelf.limits import StoreLimits
from memshelf.stores.retention import Retention

__all__ = ["Rate", "ServiceConfig"]


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests a second in the long run, and `burst` at once."""

    per_second: float
    burst: int

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ValueError("A rate is over 0 a second, with a burst of at least 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """How a service behaves. Times are in seconds.

    With `strict_headers`, the protocol headers must be exactly what the platforms demand; else they only choose the
    dialect. Without a `retention`, every version is kept. `reads` and `writes` limit each API key, in each process;
    `None` does not. A key that was revoked is refused after `key_seconds` at the latest. `head_bytes` and `body_bytes`
    are the most that the head and the body of a request may have; `header_seconds` and `body_seconds` are what a client
    may take to send them, `send_seconds` to take in an answer; `idle_seconds` is how long a connection is kept for the
    next request. `shutdown_seconds` is what requests get to finish when the service ends.
    """

    limits: StoreLimits = field(default_factory=StoreLimits)
    strict_headers: bool = False
    retention: Retention | None = None
    reads: Rate | None = None
    writes: Rate | None = None
    key_seconds: float = 1.0
    head_bytes: int = 65_536
    body_bytes: int = 1_048_576
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    send_seconds: float = 30.0
    idle_seconds: float = 15.0
    shutdown_seconds: float = 20.0
