"""What a workspace holds of one user."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from memshelf.credentials import SecretsPolicy
from memshelf.files.backends.directory.names import CONTROL
from memshelf.files.protocol import FileStore
from memshelf.records.recall import EmbedderChoice
from memshelf.workspace.archive import ConversationArchive
from memshelf.workspace.catalogue import Catalogue
from memshelf.workspace.config import WorkspaceConfig
from memshelf.workspace.directory import changed_at
from memshelf.workspace.entry_files import EntryFiles
from memshelf.workspace.experiences import Experiences
from memshelf.workspace.index_file import IndexFile

__all__ = ["UserMemory"]


class UserMemory:
    """A user's files, and what is known of them. `root` is the directory that they are in, if they are in one.

    Conversations and experiences are masked, unless the policy is not to look for credentials.
    """

    def __init__(
        self,
        user_id: str,
        store: FileStore,
        config: WorkspaceConfig,
        *,
        root: Path | None,
        durable: bool,
        secrets: SecretsPolicy,
        embedder: EmbedderChoice,
    ) -> None:
        self.id = user_id
        self.store = store
        self.catalogue = Catalogue(
            store,
            config,
            embedder,
            glance=partial(changed_at, root) if root is not None else None,
            kept_at=root / CONTROL / "entries" if root is not None else None,
        )
        self.index = IndexFile(store, config)
        self.entries = EntryFiles(store, self.catalogue, self.index)
        masked: SecretsPolicy = "off" if secrets == "off" else "mask"
        self.archive = ConversationArchive(store, config.conversations_dir, root=root, durable=durable, secrets=masked)
        self.experiences = Experiences(store, embedder=embedder, secrets=masked)

    def close(self) -> None:
        """End the threads that search; they start again when needed."""
        self.catalogue.recall.close()
        self.experiences.close()
