"""What all requests of a service share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from memshelf.service.accounts import Accounts
from memshelf.service.auth import Gate
from memshelf.service.config import ServiceConfig
from memshelf.service.logs import RequestLog
from memshelf.service.metrics import Metrics
from memshelf.service.rate import RateLimiter
from memshelf.storage.ids import Mint
from memshelf.stores.shelf import Shelf

if TYPE_CHECKING:
    from memshelf.service.meaning import Meanings

__all__ = ["ServiceState"]


@dataclass(slots=True)
class ServiceState:
    """`clock` is a monotonic one. `requests` is where the ids of requests come from, which nobody need be unable to
    guess. `ending` says that the service takes no new work. `meanings` is there when somebody has searched by meaning:
    it loads NumPy."""

    shelf: Shelf
    config: ServiceConfig
    clock: Callable[[], float] = time.monotonic
    metrics: Metrics = field(default_factory=Metrics)
    log: RequestLog = field(default_factory=lambda: RequestLog(None))
    requests: Mint = field(default_factory=lambda: Mint(random=Random().randbytes))  # noqa: S311  # see above
    ending: bool = False
    meanings: Meanings | None = None
    accounts: Accounts = field(init=False)
    gate: Gate = field(init=False)
    reads: RateLimiter | None = field(init=False)
    writes: RateLimiter | None = field(init=False)

    def __post_init__(self) -> None:
        config = self.config
        self.accounts = Accounts(self.shelf.engine, self.shelf.mint)
        self.gate = Gate(self.accounts, config.key_seconds, self.clock)
        self.reads = RateLimiter(config.reads, self.clock) if config.reads is not None else None
        self.writes = RateLimiter(config.writes, self.clock) if config.writes is not None else None
