"""How a workspace is laid out, and what an agent takes of it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from memshelf.arguments import checked_argument
from memshelf.errors import MemoryStoreError
from memshelf.files.format import validate_path

__all__ = ["WorkspaceConfig", "WorkspaceMemoryConfig"]


@dataclass(frozen=True, slots=True)
class WorkspaceConfig:
    """The names in a workspace: `{users_dir}/{user}/` holds `agent_md` (standing rules), `memory_md` (the index),
    `memory_dir` (one file an entry) and `conversations_dir` (archives).

    Each is a relative path without `..`, kept in NFC, else `ValueError`. With `memory_dir=""` the entries lie beside
    the index, as in a Claude Code memory folder.
    """

    agent_md: str = "AGENTS.md"
    memory_md: str = "MEMORY.md"
    memory_dir: str = "memory"
    users_dir: str = "users"
    conversations_dir: str = "conversations"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "memory_dir" and value == "":
                continue
            try:
                object.__setattr__(self, field.name, validate_path(value))
            except MemoryStoreError as error:
                raise ValueError(f"WorkspaceConfig.{field.name}: {error.message}") from None

    @property
    def entries_under(self) -> str:
        """What the path of every entry begins with."""
        return f"{self.memory_dir}/" if self.memory_dir else ""


@dataclass(frozen=True, slots=True)
class WorkspaceMemoryConfig:
    """What an agent does with its workspace. Each switch works alone.

    `load_workspace_context` puts the standing rules into the system prompt, `load_workspace_memory` the index, and
    recalls at most `max_memory_entries` entries with each input. `auto_archive` writes every run to the conversation
    archive. `auto_extract_memory` lets the agent's model take memories from finished runs, as candidates.
    `learn_from_corrections` keeps what the user corrects.
    """

    load_workspace_context: bool = True
    load_workspace_memory: bool = True
    max_memory_entries: int = 5
    auto_archive: bool = False
    auto_extract_memory: bool = False
    learn_from_corrections: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "max_memory_entries":
                checked_argument(field.name, getattr(self, field.name), bool)
        most = self.max_memory_entries
        if not isinstance(most, int) or isinstance(most, bool) or most < 0:
            raise ValueError(f"WorkspaceMemoryConfig.max_memory_entries is a whole number of at least 0, not {most!r}.")
