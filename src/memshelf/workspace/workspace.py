"""A user's long-term memory: the face of this package."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from memshelf.arguments import checked_argument, checked_path
from memshelf.closing import Closes
from memshelf.credentials import SecretsPolicy, admit, check_policy
from memshelf.errors import MemoryStoreError
from memshelf.files.protocol import FileStore
from memshelf.forks import Process
from memshelf.origin import Origin
from memshelf.records.recall import EmbedderChoice
from memshelf.untrusted import is_sound
from memshelf.workspace.config import WorkspaceConfig
from memshelf.workspace.conversation import ArchivedTurn
from memshelf.workspace.directory import DirectoryUsers, OneFolder
from memshelf.workspace.entries import (
    EntryDraft,
    EntryInfo,
    EntrySource,
    MemoryEntry,
    checked_description,
    checked_source,
    checked_title,
    checked_type,
)
from memshelf.workspace.experiences import EXPERIENCE_INDEX, Experiences
from memshelf.workspace.index import living
from memshelf.workspace.rules import RuleFile, repository_rules, stored_rules, warn_of_problems
from memshelf.workspace.snapshot import WorkspaceSnapshot, snapshot_of
from memshelf.workspace.turns import TRIES, give_way
from memshelf.workspace.user import UserMemory
from memshelf.workspace.users import OpenedUsers, UserStores, checked_user

__all__ = ["DRIFT_NOTE", "Workspace"]

DRIFT_NOTE: Final = (
    "Note: memories reflect the state at write time. If a memory references a specific file path, function, or flag, "
    "verify it still exists before recommending it."
)
"""Stands behind every recall: what was true when it was written may not be any more."""

_MOST_USERS = 32
"""What is known of so many users is kept in memory; of others it is learned again."""


class Workspace(Closes):
    """The long-term memory of one user at a time: typed entries, an index of them, standing rules, archives.

    `Workspace(path)` keeps it in a directory of files that a person can read and edit, one directory a user;
    `Workspace.on(open_store)` in any other `FileStore`; `Workspace.folder(path)` in one folder for one user. Whatever
    is edited by hand is found and respected. Usable from any task and event loop; several processes may share a
    workspace. Nothing is written until the first write.

    Every call may raise `MemoryStoreError` with `unavailable` when the store could not do it. A write that raises
    changed nothing, except for `write_unconfirmed`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        user_id: str | None = None,
        config: WorkspaceConfig | None = None,
        *,
        durable: bool = True,
        secrets: SecretsPolicy = "warn",
        embedder: EmbedderChoice = "default",
        stores: UserStores | None = None,
    ) -> None:
        """The workspace in the directory `path`. `durable=False` leaves it to the system when writes reach the disk.

        `secrets` is what becomes of entries with credentials in them; the conversation archive masks them, unless it is
        `"off"`. `embedder` finds entries in other words than theirs: the bundled model if it is installed, one of your
        own, or `None` for their words only. `stores` says where the files of each user are instead.
        """
        self.config = checked_argument("config", config, WorkspaceConfig, None) or WorkspaceConfig()
        self._path = _absolute(path) if path is not None else None
        if stores is None:
            if self._path is None:
                raise ValueError("A workspace has a path, or stores.")
            stores = DirectoryUsers(self._path, self.config, durable=durable)
        self._stores = checked_argument("stores", stores, UserStores)
        self._durable = durable
        self._secrets = check_policy(secrets)
        self._embedder = embedder
        self._users: dict[str, UserMemory] = {}
        self._process = Process()
        self.set_user(user_id)

    @classmethod
    def folder(
        cls,
        path: str | os.PathLike[str],
        config: WorkspaceConfig | None = None,
        *,
        durable: bool = True,
        secrets: SecretsPolicy = "warn",
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """A folder that is the memory of one user: MEMORY.md with the entries beside it, as Claude Code keeps it."""
        config = checked_argument("config", config, WorkspaceConfig, None) or WorkspaceConfig(memory_dir="")
        stores = OneFolder(_absolute(path), config, durable=durable)
        return cls(path, config=config, durable=durable, secrets=secrets, embedder=embedder, stores=stores)

    @classmethod
    def on(
        cls,
        open_store: Callable[[str], FileStore],
        user_id: str | None = None,
        config: WorkspaceConfig | None = None,
        *,
        users: Callable[[], Awaitable[list[str]]] | None = None,
        secrets: SecretsPolicy = "warn",
        embedder: EmbedderChoice = "default",
    ) -> Self:
        """A workspace on other stores: `open_store(user_id)` answers the one of a user, which no other user shares.

        It is asked once for each user. `users` lists those who have a store; without it, `list_users` is `unavailable`.
        """
        return cls(None, user_id, config, secrets=secrets, embedder=embedder, stores=OpenedUsers(open_store, users))

    async def aclose(self) -> None:
        """End the threads of the workspace, and close the stores that it opened itself. It opens again when used."""
        for user in {self._user, *self._users.values()}:
            user.close()
        await self._stores.aclose()

    @property
    def path(self) -> Path | None:
        """The directory of the workspace; `None` when it is in another store."""
        return self._path

    @property
    def user_id(self) -> str:
        return self._user.id

    @property
    def store(self) -> FileStore:
        """The files of the user: AGENTS.md, the index, entries and archives."""
        return self._user.store

    @property
    def root(self) -> Path | None:
        """The directory of the user's files; `None` when they are in another store."""
        return self._stores.root(self.user_id)

    @property
    def experiences(self) -> Experiences:
        """What the user has corrected, and other lessons."""
        return self._user.experiences

    @property
    def experience_index_path(self) -> str:
        """Where the index of experiences is: a path on the disk, or in the store."""
        return self._where(EXPERIENCE_INDEX)

    def set_user(self, user_id: str | None) -> None:
        """Go on with the memory of another user. Calls under way stay with the one they began with.

        1 to 128 printable characters without white space around them, else `ValueError`; `None` and `""` are `default`.
        """
        checked = checked_user(user_id)
        self._process.forked(self._begin)
        self._current = self._users.pop(checked) if checked in self._users else self._open(checked)
        self._users[checked] = self._current  # the last of them
        if len(self._users) > _MOST_USERS:
            self._users.pop(next(iter(self._users))).close()

    @property
    def _user(self) -> UserMemory:
        self._process.forked(self._begin)
        return self._current

    def _begin(self) -> None:
        self._current = self._open(self._current.id)
        self._users = {self._current.id: self._current}

    def _open(self, user_id: str) -> UserMemory:
        store, root = self._stores.open(user_id), self._stores.root(user_id)
        return UserMemory(
            user_id,
            store,
            self.config,
            root=root,
            durable=self._durable,
            secrets=self._secrets,
            embedder=self._embedder,
        )

    def initialize(self) -> None:
        """Make the user's directories and an empty AGENTS.md, for a person to look at. Not needed before a write, and
        nothing happens the second time, or on other stores."""
        self._stores.prepare(self.user_id)

    async def list_users(self) -> list[str]:
        """The ids of all users who have a memory here, sorted."""
        return await self._stores.users()

    async def delete_user(self, user_id: str, confirm: bool = False) -> bool:
        """Remove everything that a user has, and say whether there was anything.

        `ValueError` without `confirm`, or without a name: whoever deletes the default user says so.
        """
        if not confirm:
            raise ValueError("Deleting a user removes all of their memory: say confirm=True.")
        if not user_id:
            raise ValueError("A user id that is empty names nobody to delete.")
        checked = checked_user(user_id)
        deleted = await self._stores.delete(checked)
        if (known := self._users.pop(checked, None)) is not None:
            known.close()
            if known is self._user:
                self.set_user(checked)
        return deleted

    async def write_memory_entry(
        self,
        title: str,
        content: str,
        memory_type: str = "project",
        description: str = "",
        *,
        source: EntrySource = "confirmed",
        origin: Origin | None = None,
    ) -> str:
        """Store an entry, and answer the name of its file.

        The same title and type again updates that entry and keeps its file. Titles are the same when equal after NFC
        and with white space folded. `description` holds the words by which the entry will be looked for. With
        `source="auto"` it is a candidate: recalled and marked, but not in the index, and never in the place of a
        confirmed entry.

        `ValueError` for a type or source that there is not, an empty content, a title of no or more than 200
        characters, or a description of more than 200. `too_large`, `invalid_file`; `invalid_text` where credentials
        are refused.
        """
        user = self._user
        if not isinstance(content, str):
            raise TypeError(f"The content of an entry is a str, not {type(content).__name__}.")
        if not content.strip():
            raise ValueError("An entry has content; this one is empty.")
        if not is_sound(content):
            raise MemoryStoreError("invalid_file", "An entry is UTF-8 text, without lone surrogates.")
        kind, texts = checked_type(memory_type), (checked_title(title), checked_description(description), content)
        title, description, content = (admit(text, self._secrets, subject="An entry") for text in texts)
        # A placeholder may be longer than what it stands for.
        title, description = checked_title(title), checked_description(description)
        draft = EntryDraft(title, description, kind, content, checked_source(source))
        return await user.entries.write(draft, origin or Origin())

    async def read_entry(self, file: str) -> MemoryEntry:
        """The entry in a file, as it is now. `not_found`, `invalid_path`."""
        return await self._user.entries.read(file)

    async def list_entries(self) -> list[EntryInfo]:
        """All entries, candidates too, the newest first."""
        catalogue = self._user.catalogue
        await catalogue.refresh()
        return catalogue.newest()

    async def candidates(self) -> list[EntryInfo]:
        """The entries that were extracted automatically and wait for `promote` or `reject`, the newest first."""
        return [each for each in await self.list_entries() if each.source == "auto"]

    async def promote(self, file: str, *, origin: Origin | None = None) -> str:
        """Confirm a candidate, and answer the name of its file from now on; a confirmed entry stays as it is.

        When there is a confirmed entry of the same title and type, the candidate takes its place. `not_found`.
        """
        return await self._user.entries.promote(file, origin or Origin())

    async def reject(self, file: str, *, origin: Origin | None = None) -> None:
        """Remove a candidate. As `forget`; `conflict` for an entry that is confirmed, which `forget` removes."""
        await self._user.entries.delete(file, origin or Origin(), candidate=True)

    async def forget(self, file: str, *, origin: Origin | None = None) -> None:
        """Remove an entry and its row. `not_found`; `version_mismatch` when it was changed at that very moment."""
        await self._user.entries.delete(file, origin or Origin())

    async def search(self, query: str, limit: int = 10) -> list[MemoryEntry]:
        """At most `limit` entries that the query is about, best first; none for an empty query."""
        user = self._user
        await user.catalogue.refresh()
        return await user.entries.load(await user.catalogue.rank(query, limit))

    async def get_relevant_memories(
        self, query: str = "", limit: int = 5, already_surfaced: set[str] | None = None
    ) -> str:
        """The text of at most `limit` entries that the query is about, and a note that they may be out of date.

        `""` when none is. An empty query recalls the newest. Entries in `already_surfaced` are left out; the files of
        those in the answer are added to it.
        """
        user = self._user
        checked_argument("query", query, str)
        checked_argument("limit", limit, int)
        checked_argument("already_surfaced", already_surfaced, set, None)
        surfaced = already_surfaced if already_surfaced is not None else set()
        await user.catalogue.refresh()
        if query.strip():
            files = await user.catalogue.rank(query, limit, frozenset(surfaced))
        else:
            files = [each.file for each in user.catalogue.newest() if each.file not in surfaced][: max(limit, 0)]
        entries = await user.entries.load(files)
        surfaced.update(each.file for each in entries)
        return "\n\n".join([*(_recalled(each) for each in entries), DRIFT_NOTE]) if entries else ""

    async def archive_conversation(
        self, messages: Iterable[Mapping[str, object]], session_id: str | None = None
    ) -> str | None:
        """Append what users and assistants said to the day's conversation; see `ConversationArchive.append`."""
        return await self._user.archive.append(messages, session_id)

    async def search_conversations(self, query: str, limit: int = 10) -> list[ArchivedTurn]:
        """The archived turns in which somebody says what the query names; see `ConversationArchive.search`."""
        return await self._user.archive.search(query, limit)

    async def memory_index(self) -> str:
        """MEMORY.md as it is now."""
        return await self._user.index.text()

    async def rebuild_index(self) -> None:
        """Make the rows of MEMORY.md agree with the entries. Rows that are right stay as they are, and so does every
        line that is no row. The newest entries that fit are listed."""
        user, listed = self._user, None
        for attempt in range(TRIES):
            await user.catalogue.refresh()
            entries = [each for each in user.catalogue.newest()[::-1] if each.source == "confirmed"]
            if entries == listed:  # nobody wrote meanwhile
                return
            await user.index.rebuild(entries)
            listed = entries
            if attempt:
                await give_way(attempt)

    async def rules(self, cwd: str | os.PathLike[str] | None = None) -> list[RuleFile]:
        """The user's AGENTS.md, then with `cwd` those of its repository, from the root down to that directory.

        One that is no text, no file or over 64 KiB has a `problem` instead of a text, which is logged as a warning.
        """
        where, name = self._where(self.config.agent_md), self.config.agent_md  # before another user's turn
        own = await stored_rules(self.store, name, where, on_disk=self.root is not None)
        files = [own] if own is not None else []
        checked_argument("cwd", cwd, str, os.PathLike, None)
        if cwd is not None:
            files += await asyncio.to_thread(repository_rules, Path(cwd), name)
        warn_of_problems(files)
        return files

    async def freeze_snapshots(
        self, query: str | None = None, *, cwd: str | os.PathLike[str] | None = None, paths: bool = True
    ) -> WorkspaceSnapshot:
        """Rules, index and experiences as they are now, as text for the system prompt of one session.

        Keep the answer with the session: it never changes, whatever is written meanwhile. The session's first input,
        `query`, chooses the experiences; without it they are the newest. Rows of the index whose entries are not there
        any more are left out. Without `paths`, the user's files are named as `read_memory` takes them, and not by where
        they are on the disk.
        """
        user, own, name = self._user, self._where(self.config.agent_md), self.config.agent_md
        where, learned = self.config.memory_md, EXPERIENCE_INDEX
        if paths:
            name, where, learned = own, self._where(where), self.experience_index_path
        rules = [replace(each, where=name) if each.where == own else each for each in await self.rules(cwd)]
        experiences = await user.experiences.learned_experiences(query, where=learned)
        index = await user.index.shown()
        with suppress(MemoryStoreError):  # what cannot be looked at is shown as it is
            await user.catalogue.refresh()
            index = living(index, user.catalogue.entries, self.config.entries_under)
        return snapshot_of(user.id, rules, index, where, experiences)

    def _where(self, name: str) -> str:
        root = self.root
        return str(root / name) if root is not None else name


def _absolute(path: str | os.PathLike[str]) -> Path:
    return Path(checked_path("path", path)).absolute()


def _recalled(entry: MemoryEntry) -> str:
    mark = " (extracted automatically, not confirmed)" if entry.source == "auto" else ""
    return f"### {entry.title}{mark}\n\n{entry.content.strip()}"
