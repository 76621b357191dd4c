"""The deadline by which a conversation goes on without its workspace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from memshelf.errors import MemoryStoreError
from memshelf.records.context import RecallOutcome
from memshelf.records.deadline import WORDS_FROM

__all__ = ["before_deadline", "reason"]

Answer = TypeVar("Answer")

_SECONDS = 10
"""How long a conversation waits for a workspace before it goes on without."""

_FOR_MEANING = 4
"""How many of these seconds it waits for an embedder before it goes by words."""

_LOG = logging.getLogger(__name__)


async def before_deadline(call: Awaitable[Answer]) -> tuple[RecallOutcome, Answer | None]:
    """What a workspace answers in time. A failure is logged, and the conversation goes on without."""
    # An embedder that hangs must not cost a conversation its standing rules.
    before = WORDS_FROM.set(asyncio.get_running_loop().time() + _FOR_MEANING)
    try:
        async with asyncio.timeout(_SECONDS):
            return "recalled", await call
    except TimeoutError:
        _LOG.warning("A workspace could not be read in %d seconds", _SECONDS)
        return "timeout", None
    except Exception as error:  # noqa: BLE001  # stores are anyone's code; what cannot be read must not end it
        _LOG.warning("A workspace could not be read: %s", reason(error))
        return "unavailable", None
    finally:
        WORDS_FROM.reset(before)


def reason(error: Exception) -> str:
    """What a log may say of an error: nothing that was remembered."""
    return error.code if isinstance(error, MemoryStoreError) else type(error).__name__
