"""One memory for every AI agent.

Names are imported when they are first used, so that `import memshelf` costs next to nothing and needs no optional
package. A name whose extra is not installed says which one it is; `from memshelf import *` leaves it out.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what `_HOMES` below says, for type checkers; `as` makes a name public for them
    from memshelf.agent.agent import Agent as Agent
    from memshelf.agent.builder import HarnessBuilder as HarnessBuilder
    from memshelf.agent.capabilities.compaction import CompactionCapability as CompactionCapability
    from memshelf.agent.capabilities.conversation_archive import (
        ConversationArchiveHooks as ConversationArchiveHooks,
    )
    from memshelf.agent.capabilities.files import FileMemoryCapability as FileMemoryCapability
    from memshelf.agent.capabilities.handoff import HandoffCapability as HandoffCapability
    from memshelf.agent.capabilities.history import HistoryWindowCapability as HistoryWindowCapability
    from memshelf.agent.capabilities.records import RecordMemoryCapability as RecordMemoryCapability
    from memshelf.agent.capabilities.session import (
        SessionLogCapability as SessionLogCapability,
        session_state as session_state,
    )
    from memshelf.agent.capabilities.summary import SessionSummaryCapability as SessionSummaryCapability
    from memshelf.agent.capabilities.workspace import WorkspaceCapability as WorkspaceCapability
    from memshelf.agent.events import (
        HistoryReplacedEvent as HistoryReplacedEvent,
        MemoryContextEvent as MemoryContextEvent,
        MemoryRecallEvent as MemoryRecallEvent,
    )
    from memshelf.agent.model import ModelConfigurationError as ModelConfigurationError
    from memshelf.agent.permissions import ToolPermissions as ToolPermissions
    from memshelf.agent.result import (
        HarnessResult as HarnessResult,
        RunIncompleteError as RunIncompleteError,
    )
    from memshelf.agent.run import (
        Executable as Executable,
        HarnessStream as HarnessStream,
    )
    from memshelf.agent.spec import AgentSpec as AgentSpec
    from memshelf.agent.state import (
        HarnessState as HarnessState,
        PendingCall as PendingCall,
    )
    from memshelf.credentials import (
        Secret as Secret,
        SecretsPolicy as SecretsPolicy,
        find_secrets as find_secrets,
        mask_secrets as mask_secrets,
    )
    from memshelf.embedding.bundled import BundledEmbedder as BundledEmbedder
    from memshelf.embedding.endpoint import EndpointEmbedder as EndpointEmbedder
    from memshelf.embedding.protocol import Embedder as Embedder
    from memshelf.embedding.pydantic_ai import PydanticAIEmbedder as PydanticAIEmbedder
    from memshelf.errors import (
        ErrorCode as ErrorCode,
        MemoryStoreError as MemoryStoreError,
    )
    from memshelf.files.backends.directory import DirectoryFileStore as DirectoryFileStore
    from memshelf.files.backends.http import (
        ANTHROPIC_HEADERS as ANTHROPIC_HEADERS,
        ZHIPU_HEADERS as ZHIPU_HEADERS,
        MemoryStoreFileStore as MemoryStoreFileStore,
        PlatformFileStore as PlatformFileStore,
        open_memory_store as open_memory_store,
    )
    from memshelf.files.backends.in_process import InProcessFileStore as InProcessFileStore
    from memshelf.files.backends.postgres import PostgresFileStore as PostgresFileStore
    from memshelf.files.backends.sqlite import SqliteFileStore as SqliteFileStore
    from memshelf.files.format import (
        describe as describe,
        validate_directory as validate_directory,
        validate_path as validate_path,
    )
    from memshelf.files.model import (
        Changes as Changes,
        FileEntry as FileEntry,
        FileText as FileText,
        FullResync as FullResync,
        GrepMatch as GrepMatch,
        Version as Version,
        VersionPage as VersionPage,
    )
    from memshelf.files.mount import (
        DEFAULT_FILE_GUIDE as DEFAULT_FILE_GUIDE,
        FileMount as FileMount,
        MemoryCursors as MemoryCursors,
    )
    from memshelf.files.protocol import (
        FileStore as FileStore,
        HistoryFileStore as HistoryFileStore,
        SearchableFileStore as SearchableFileStore,
    )
    from memshelf.limits import (
        FileFormat as FileFormat,
        FileMemoryLimits as FileMemoryLimits,
        RecordMemoryLimits as RecordMemoryLimits,
    )
    from memshelf.mcp.server import mcp_server as mcp_server
    from memshelf.mounts.mirror import (
        Mirror as Mirror,
        MirrorReport as MirrorReport,
    )
    from memshelf.origin import Origin as Origin
    from memshelf.records.backends.in_process import InProcessRecordStore as InProcessRecordStore
    from memshelf.records.backends.mem0 import (
        MEM0_OSS as MEM0_OSS,
        MEM0_PLATFORM as MEM0_PLATFORM,
    )
    from memshelf.records.backends.postgres import PostgresRecordStore as PostgresRecordStore
    from memshelf.records.backends.sqlite import SqliteRecordStore as SqliteRecordStore
    from memshelf.records.model import (
        MemoryRecord as MemoryRecord,
        NewRecord as NewRecord,
        RecordPage as RecordPage,
    )
    from memshelf.records.mount import (
        DEFAULT_RECORD_GUIDE as DEFAULT_RECORD_GUIDE,
        RecordMount as RecordMount,
    )
    from memshelf.records.protocol import (
        RecallRecordStore as RecallRecordStore,
        RecordStore as RecordStore,
    )
    from memshelf.records.text import validate_record_text as validate_record_text
    from memshelf.threads.compaction import CompressionManager as CompressionManager
    from memshelf.threads.listing import SessionInfo as SessionInfo
    from memshelf.threads.log import SessionLog as SessionLog
    from memshelf.threads.memory import WorkingMemory as WorkingMemory
    from memshelf.workspace.config import (
        WorkspaceConfig as WorkspaceConfig,
        WorkspaceMemoryConfig as WorkspaceMemoryConfig,
    )
    from memshelf.workspace.conversation import ArchivedTurn as ArchivedTurn
    from memshelf.workspace.entries import (
        EntryInfo as EntryInfo,
        MemoryEntry as MemoryEntry,
    )
    from memshelf.workspace.experiences import (
        Experience as Experience,
        Experiences as Experiences,
    )
    from memshelf.workspace.importing import (
        ImportReport as ImportReport,
        import_memories as import_memories,
    )
    from memshelf.workspace.snapshot import WorkspaceSnapshot as WorkspaceSnapshot
    from memshelf.workspace.workspace import Workspace as Workspace

__version__ = "0.1.0"

_HOMES = {
    "memshelf.agent.agent": ("Agent",),
    "memshelf.agent.builder": ("HarnessBuilder",),
    "memshelf.agent.capabilities.compaction": ("CompactionCapability",),
    "memshelf.agent.capabilities.conversation_archive": ("ConversationArchiveHooks",),
    "memshelf.agent.capabilities.files": ("FileMemoryCapability",),
    "memshelf.agent.capabilities.handoff": ("HandoffCapability",),
    "memshelf.agent.capabilities.history": ("HistoryWindowCapability",),
    "memshelf.agent.capabilities.records": ("RecordMemoryCapability",),
    "memshelf.agent.capabilities.session": ("SessionLogCapability", "session_state"),
    "memshelf.agent.capabilities.summary": ("SessionSummaryCapability",),
    "memshelf.agent.capabilities.workspace": ("WorkspaceCapability",),
    "memshelf.agent.events": ("HistoryReplacedEvent", "MemoryContextEvent", "MemoryRecallEvent"),
    "memshelf.agent.model": ("ModelConfigurationError",),
    "memshelf.agent.permissions": ("ToolPermissions",),
    "memshelf.agent.result": ("HarnessResult", "RunIncompleteError"),
    "memshelf.agent.run": ("Executable", "HarnessStream"),
    "memshelf.agent.spec": ("AgentSpec",),
    "memshelf.agent.state": ("HarnessState", "PendingCall"),
    "memshelf.embedding.bundled": ("BundledEmbedder",),
    "memshelf.embedding.endpoint": ("EndpointEmbedder",),
    "memshelf.embedding.protocol": ("Embedder",),
    "memshelf.embedding.pydantic_ai": ("PydanticAIEmbedder",),
    "memshelf.credentials": ("Secret", "SecretsPolicy", "find_secrets", "mask_secrets"),
    "memshelf.errors": ("ErrorCode", "MemoryStoreError"),
    "memshelf.files.backends.directory": ("DirectoryFileStore",),
    "memshelf.files.backends.http": (
        "ANTHROPIC_HEADERS",
        "ZHIPU_HEADERS",
        "MemoryStoreFileStore",
        "PlatformFileStore",
        "open_memory_store",
    ),
    "memshelf.files.backends.in_process": ("InProcessFileStore",),
    "memshelf.files.backends.postgres": ("PostgresFileStore",),
    "memshelf.files.backends.sqlite": ("SqliteFileStore",),
    "memshelf.files.format": ("describe", "validate_directory", "validate_path"),
    "memshelf.files.model": ("Changes", "FileEntry", "FileText", "FullResync", "GrepMatch", "Version", "VersionPage"),
    "memshelf.files.mount": ("DEFAULT_FILE_GUIDE", "FileMount", "MemoryCursors"),
    "memshelf.files.protocol": ("FileStore", "HistoryFileStore", "SearchableFileStore"),
    "memshelf.limits": ("FileFormat", "FileMemoryLimits", "RecordMemoryLimits"),
    "memshelf.mcp.server": ("mcp_server",),
    "memshelf.mounts.mirror": ("Mirror", "MirrorReport"),
    "memshelf.origin": ("Origin",),
    "memshelf.records.backends.in_process": ("InProcessRecordStore",),
    "memshelf.records.backends.mem0": ("MEM0_OSS", "MEM0_PLATFORM"),
    "memshelf.records.backends.postgres": ("PostgresRecordStore",),
    "memshelf.records.backends.sqlite": ("SqliteRecordStore",),
    "memshelf.records.model": ("MemoryRecord", "NewRecord", "RecordPage"),
    "memshelf.records.mount": ("DEFAULT_RECORD_GUIDE", "RecordMount"),
    "memshelf.records.protocol": ("RecallRecordStore", "RecordStore"),
    "memshelf.records.text": ("validate_record_text",),
    "memshelf.threads.compaction": ("CompressionManager",),
    "memshelf.threads.listing": ("SessionInfo",),
    "memshelf.threads.log": ("SessionLog",),
    "memshelf.threads.memory": ("WorkingMemory",),
    "memshelf.workspace.config": ("WorkspaceConfig", "WorkspaceMemoryConfig"),
    "memshelf.workspace.conversation": ("ArchivedTurn",),
    "memshelf.workspace.entries": ("EntryInfo", "MemoryEntry"),
    "memshelf.workspace.experiences": ("Experience", "Experiences"),
    "memshelf.workspace.importing": ("ImportReport", "import_memories"),
    "memshelf.workspace.snapshot": ("WorkspaceSnapshot",),
    "memshelf.workspace.workspace": ("Workspace",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__all__":
        value: object = ["__version__", *(each for home, names in _HOMES.items() if _installed(home) for each in names)]
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'memshelf' has no attribute {name!r}")
    globals()[name] = value
    return value


def _installed(home: str) -> bool:
    try:
        import_module(home)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "memshelf":
            raise
        return False
    return True


def __dir__() -> list[str]:
    return sorted(["__version__", *_HOME_OF])
