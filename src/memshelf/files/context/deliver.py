"""From mounts and cursors to the context of one run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memshelf.files.context.layout import layout
from memshelf.files.context.snapshot import Snapshot, read
from memshelf.files.mount import FileMount, MemoryCursors
from memshelf.limits import FileMemoryLimits
from memshelf.mounted import warn_of_failure
from memshelf.untrusted import size

__all__ = ["Delivered", "Outcome", "deliver"]

Outcome: TypeAlias = Literal["full", "changes", "unchanged", "unavailable", "omitted"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one memory contributed to a run's context.

    `block` is the text for the model, empty unless the outcome is `full` or `changes`. `unavailable`: its store
    failed; `omitted`: the budget left no room for even an empty block. Those two keep their old cursor.
    """

    memory: str
    outcome: Outcome
    block: str = ""

    @property
    def bytes(self) -> int:
        return size(self.block)


async def deliver(
    mounts: Sequence[FileMount],
    cursors: MemoryCursors | None,
    limits: FileMemoryLimits,
    *,
    seconds: float | None = None,
) -> tuple[Delivered, ...]:
    """Read every mount, render what is new within the budget, and advance `cursors` over what was rendered.

    One entry a mount, in mount order. A store that fails, or takes longer than `seconds`, does not fail the run.
    """
    cursors = cursors if cursors is not None else MemoryCursors()
    read_ = await asyncio.gather(*(_snapshot(mount, cursors.get(mount.key), seconds) for mount in mounts))
    blocks = layout([snapshot for snapshot in read_ if snapshot is not None], limits)
    delivered: list[Delivered] = []
    for mount, snapshot in zip(mounts, read_, strict=True):
        block = blocks.get(mount.name)
        if snapshot is None:
            delivered.append(Delivered(mount.name, "unavailable"))
        elif snapshot.unchanged:
            delivered.append(Delivered(mount.name, "unchanged"))
        elif block is None:
            delivered.append(Delivered(mount.name, "omitted"))
        else:
            delivered.append(Delivered(mount.name, block.kind, block.text))
        if snapshot is not None and delivered[-1].outcome != "omitted":
            cursors.advance(mount.key, snapshot.cursor)
    return tuple(delivered)


async def _snapshot(mount: FileMount, since: str | None, seconds: float | None) -> Snapshot | None:
    try:
        async with asyncio.timeout(seconds):
            return await read(mount, since)
    except Exception as error:  # noqa: BLE001  # stores are anyone's code; what cannot be read must not stop the run
        warn_of_failure(_log, mount.name, "read", error)
        return None
