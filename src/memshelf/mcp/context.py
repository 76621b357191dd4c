"""What the memories hold that matters to a conversation: the text that an agent is given at the start of a run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from memshelf.errors import MemoryStoreError
from memshelf.files.context import deliver
from memshelf.files.mount import FileMount
from memshelf.limits import FileMemoryLimits, RecordMemoryLimits
from memshelf.mounted import warn_of_failure
from memshelf.records.context import recall
from memshelf.records.mount import RecordMount
from memshelf.workspace.instructions import frozen_block, recall_block
from memshelf.workspace.workspace import Workspace

__all__ = ["context"]

_SECONDS = 10
"""How long a workspace is waited for."""

_ENTRIES = 5
_FAILED = "omitted", "timeout", "unavailable"
_NOTHING = "The memories hold nothing yet that fits."

_log = logging.getLogger(__name__)


async def context(
    files: Sequence[FileMount],
    records: Sequence[RecordMount],
    workspace: Workspace | None,
    about: str,
    file_limits: FileMemoryLimits,
    record_limits: RecordMemoryLimits,
) -> str:
    """The file memories' indexes, the records and entries that `about` is about, and the standing rules.

    Blocks that their content can neither close nor open. A memory that cannot be read is named, and does not fail
    the others.
    """
    delivered, recalled, known = await asyncio.gather(
        deliver(files, None, file_limits), recall(records, about, record_limits), _workspace(workspace, about)
    )
    parts = list(known)
    for memory, outcome, block in [
        *((each.memory, each.outcome, each.block) for each in delivered),
        *((each.memory, each.outcome, each.block) for each in recalled),
    ]:
        if block:
            parts.append(block)
        elif outcome in _FAILED:
            parts.append(f"Memory {memory} is not shown here ({outcome}).")
    return "\n\n".join(parts) or _NOTHING


async def _workspace(workspace: Workspace | None, about: str) -> list[str]:
    if workspace is None:
        return []
    try:
        async with asyncio.timeout(_SECONDS):
            snapshot = await workspace.freeze_snapshots(query=about)
            recalled = await workspace.get_relevant_memories(about, _ENTRIES) if about.strip() else ""
    except (MemoryStoreError, TimeoutError) as error:
        warn_of_failure(_log, "workspace", "read", error)
        return ["The workspace could not be read."]
    shown = [frozen_block(workspace.user_id, snapshot.text())]
    return [*shown, recall_block(recalled)] if recalled else shown
