"""What a model can do with a workspace: plain functions that return JSON values, for any door to bind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memshelf.errors import MemoryStoreError
from memshelf.files import edits
from memshelf.files.tools import failure as file_failure
from memshelf.limits import FileFormat
from memshelf.mounted import Json
from memshelf.origin import Origin
from memshelf.workspace.turns import overtaken

if TYPE_CHECKING:  # or else whoever asks for the tools' names would load all that a workspace needs
    from memshelf.workspace.entries import MemoryEntry, MemoryType
    from memshelf.workspace.workspace import Workspace

__all__ = [
    "MOST_ENTRIES",
    "WORKSPACE_PARAMETERS",
    "WORKSPACE_TOOLS",
    "WorkspaceTool",
    "WorkspaceToolKey",
    "WorkspaceTools",
    "failure",
]

WorkspaceToolKey: TypeAlias = Literal["save", "search", "forget", "read", "rules"]

READ_CHARS = 20_000
"""How much of a file one call shows."""

MOST_ENTRIES = 20
"""How many entries one search finds at most."""

_FOUND_CHARS = 4_000
_RETRIES = 3
_FORMAT = FileFormat()


@dataclass(frozen=True, slots=True)
class WorkspaceTool:
    """One tool as a door offers it: `id` is what permission rules name, `writes` whether it changes anything."""

    key: WorkspaceToolKey
    name: str
    writes: bool
    description: str

    @property
    def id(self) -> str:
        return f"memory.workspace.{self.key}"


WORKSPACE_TOOLS: Final[dict[WorkspaceToolKey, WorkspaceTool]] = {
    tool.key: tool
    for tool in (
        WorkspaceTool(
            "save",
            "save_memory",
            True,
            "Keep a fact for later conversations with this user. The same title and type again replaces what that "
            "entry said. A standing rule (always, never, from now on) belongs in AGENTS.md instead: edit_rules.",
        ),
        WorkspaceTool(
            "search",
            "search_memory",
            False,
            "Find entries of the long-term memory by what they are about: those that you need and were not shown.",
        ),
        WorkspaceTool("forget", "forget_memory", True, "Remove an entry of the long-term memory for good."),
        WorkspaceTool(
            "read",
            "read_memory",
            False,
            "Read a file of the workspace as it is now: AGENTS.md, MEMORY.md (the index), an entry such as "
            "memory/user_role.md, an archived conversation.",
        ),
        WorkspaceTool(
            "rules",
            "edit_rules",
            True,
            "Change the user's standing rules, AGENTS.md: replace a text that occurs once, or add a line at the end. "
            "Only for what the user wants to hold always.",
        ),
    )
}

WORKSPACE_PARAMETERS: Final[dict[WorkspaceToolKey, dict[str, str]]] = {
    "save": {
        "title": "What the entry is called, in at most 200 characters.",
        "content": "The fact, in Markdown.",
        "memory_type": "What kind of fact it is.",
        "description": "The words by which somebody would look for it, in at most 200 characters.",
    },
    "search": {"query": "What the entries are to be about.", "limit": "How many entries at most."},
    "forget": {"file": "The file of the entry, such as user_role.md."},
    "read": {
        "path": "The path of the file in the workspace, such as AGENTS.md.",
        "offset": "From which character on; next_offset of the part before.",
    },
    "rules": {
        "old_string": "The text to replace, which occurs once; empty to add a line at the end.",
        "new_string": "What stands there instead; empty to remove the text.",
    },
}
"""What each parameter of each tool means."""


class WorkspaceTools:
    """The tools, on the workspace of one user. A refusal is a `MemoryStoreError`, and then nothing changed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def save(
        self, title: str, content: str, memory_type: MemoryType, description: str, *, origin: Origin
    ) -> Json:
        """Store an entry; `file` names it."""
        try:
            file = await self._workspace.write_memory_entry(title, content, memory_type, description, origin=origin)
        except ValueError as error:
            raise MemoryStoreError("invalid_value", str(error)) from error
        return {"saved": file}

    async def search(self, query: str, limit: int = 5) -> Json:
        """The entries that the query is about, best first."""
        return {"entries": [_shown(entry) for entry in await self._workspace.search(query, limit)]}

    async def forget(self, file: str, *, origin: Origin) -> Json:
        """Remove an entry by the name of its file. `not_found`."""
        file = self._inside(file)
        await self._workspace.forget(file.removeprefix(self._workspace.config.entries_under), origin=origin)
        return {"forgotten": file.removeprefix(self._workspace.config.entries_under)}

    async def read(self, path: str, offset: int = 0) -> Json:
        """A file of the user's, from the character `offset` on. `not_found`, `invalid_path`."""
        found = await self._workspace.store.read(self._inside(path))
        shown: Json = {"path": found.path, "content": found.text[offset : offset + READ_CHARS]}
        if (end := offset + READ_CHARS) < len(found.text):
            shown["next_offset"] = end
        return shown

    async def rules(self, old_string: str, new_string: str, *, origin: Origin) -> Json:
        """Replace the one occurrence of a text in the standing rules; with `old_string=""`, add a line at the end,
        unless it stands there already."""
        store, path = self._workspace.store, self._workspace.config.agent_md
        if old_string:
            done = await edits.edit(
                store, path, old_string, new_string, origin=origin, format=_FORMAT, retries=_RETRIES
            )
        elif new_string.strip():
            line = f"{new_string.rstrip()}\n"
            rules = await edits.find_text(store, path)
            if rules is not None and f"\n{line}" in f"\n{rules.text}\n":
                return {"path": path, "size": len(rules.text.encode()), "hint": "The rules say so already."}
            done = await self._added(line, origin)
        else:
            raise MemoryStoreError("invalid_value", "There is nothing to add: new_string is empty.")
        return {"path": done.path, "size": done.size}

    async def _added(self, line: str, origin: Origin) -> edits.Written:
        store, path = self._workspace.store, self._workspace.config.agent_md
        try:
            return await edits.append(store, path, line, origin=origin, format=_FORMAT, retries=_RETRIES)
        except MemoryStoreError as error:
            if error.code != "not_found":
                raise
        try:
            return await edits.create(store, path, line, origin=origin, format=_FORMAT, retries=_RETRIES)
        except MemoryStoreError as error:
            if not overtaken(error, path):
                raise
        return await edits.append(store, path, line, origin=origin, format=_FORMAT, retries=_RETRIES)

    def _inside(self, path: str) -> str:
        """The path in the user's files; prompts name some by where they lie on the disk."""
        root = self._workspace.root
        return path.removeprefix(f"{root}/") if root is not None else path


def failure(error: MemoryStoreError) -> Json:
    """A refusal as the model sees it."""
    return file_failure(error, _FORMAT)


def _shown(entry: MemoryEntry) -> Json:
    shown: Json = {"file": entry.file, "title": entry.title, "type": entry.memory_type}
    if entry.source == "auto":
        shown["source"] = "auto"
    shown["content"] = entry.content.strip()[:_FOUND_CHARS]
    if len(entry.content.strip()) > _FOUND_CHARS:
        shown["truncated"] = True
    return shown
