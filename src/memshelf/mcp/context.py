"""What the memories hold that matters to a conversation: the text that an agent is given at the start of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memshelf.files.context import Delivered, deliver
from memshelf.files.mount import FileMount
from memshelf.limits import FileMemoryLimits, RecordMemoryLimits
from memshelf.records.context import Recalled, recall
from memshelf.records.mount import RecordMount
from memshelf.workspace.deadline import before_deadline
from memshelf.workspace.instructions import frozen_block, recall_block

if TYPE_CHECKING:
    from memshelf.workspace.workspace import Workspace

__all__ = ["context"]

_ENTRIES = 5
_SECONDS = 10  # as for a workspace; clients give up after 30 or 60, and then nothing at all is shown
_FAILED = "omitted", "timeout", "unavailable"
_NOTHING = "The memories hold nothing yet that fits."


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
        deliver(files, None, file_limits, seconds=_SECONDS),
        recall(records, about, record_limits),
        _workspace(workspace, about),
    )
    memories: list[Delivered | Recalled] = [*delivered, *recalled]
    parts = list(known)
    for each in memories:
        if each.block:
            parts.append(each.block)
        elif each.outcome in _FAILED:
            parts.append(f"Memory {each.memory} is not shown here ({each.outcome}).")
    return "\n\n".join(parts) or _NOTHING


async def _workspace(workspace: Workspace | None, about: str) -> list[str]:
    if workspace is None:
        return []
    outcome, snapshot = await before_deadline(workspace.freeze_snapshots(about, paths=False))
    if snapshot is None:
        return [f"The workspace is not shown here ({outcome})."]
    _, recalled = (
        await before_deadline(workspace.get_relevant_memories(about, _ENTRIES)) if about.strip() else ("", None)
    )
    shown = [frozen_block(workspace.user_id, snapshot.text())]
    return [*shown, recall_block(recalled)] if recalled else shown
