"""Taking over the memory of another program: an Agentica workspace, or a Claude Code memory folder."""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memshelf.arguments import checked_argument, checked_path
from memshelf.errors import MemoryStoreError
from memshelf.files.edits import find
from memshelf.origin import Origin
from memshelf.presence import is_directory, is_file
from memshelf.workspace.config import WorkspaceConfig
from memshelf.workspace.entries import MemoryEntry
from memshelf.workspace.users import user_of
from memshelf.workspace.workspace import Workspace

__all__ = ["ImportReport", "has_users", "import_memories"]

_LONGEST = 200
_CANDIDATES = "memory_candidates"


@dataclass(slots=True)
class ImportReport:
    """What an import did, as `user: file` for each entry of the source.

    `unchanged` was there already. `left` was not taken over, each with the reason. `shortened` has a title or a
    description that was cut to 200 characters; what was cut stands in the content.
    """

    imported: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)


async def import_memories(source: str | os.PathLike[str], into: Workspace, *, replace: bool = False) -> ImportReport:
    """Copy entries, candidates and standing rules from a folder, which stays as it is.

    A folder with `users/` is a workspace, all of whose users are taken over under their ids; any other is the memory of
    one user, and goes to the one that `into` is set to, which it stays. What has the same title and type there and says
    something else is left alone, unless `replace`. Doing it twice changes nothing. Conversations, experiences, and
    other keys of an entry's frontmatter are not copied. `not_found` when there is no such folder; `unavailable` when
    it cannot be read, after which what was taken over stays.
    """
    report, into = ImportReport(), copy.copy(checked_argument("into", into, Workspace))  # others keep their user
    with _refusals():
        for user_id, root in await asyncio.to_thread(_users, source, into.user_id):
            try:
                into.set_user(user_id)
            except ValueError as error:
                report.left.append((user_id, str(error)))
                continue
            await _import_user(root, into, report, replace=replace)
    return report


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else "The folder cannot be read: "
        raise MemoryStoreError("unavailable", f"{where}{error.strerror or error}.") from error


def has_users(folder: Path) -> bool:
    """Whether a folder is a workspace, with all its users, and not the memory of one."""
    return is_directory(folder / WorkspaceConfig().users_dir)


def _users(source: str | os.PathLike[str], only: str) -> list[tuple[str, Path]]:
    folder = Path(checked_path("source", source)).absolute()
    if not is_directory(folder):
        raise MemoryStoreError("not_found", "There is no such folder to import from.")
    if not has_users(folder):
        return [(only, folder)]
    users = folder / WorkspaceConfig().users_dir
    directories = sorted(each for each in users.iterdir() if is_directory(each) and not each.is_symlink())
    return [(user_of(each.name) or each.name, each) for each in directories]


async def _import_user(root: Path, into: Workspace, report: ImportReport, *, replace: bool) -> None:
    there = {(each.memory_type, each.title): each.file for each in await into.list_entries()}
    async for entry in _entries(root):
        name = f"{into.user_id}: {entry.file}"
        title, description, content = _fitted(entry)
        known = there.get((entry.memory_type, title))
        if known is not None:
            kept = await into.read_entry(known)
            if (kept.content, kept.description) == (content, description):
                report.unchanged.append(name)
                continue
            if not replace:
                report.left.append((name, "There is another entry of this title and type."))
                continue
        try:
            file = await into.write_memory_entry(title, content, entry.memory_type, description, source=entry.source)
        except (ValueError, MemoryStoreError) as error:
            if isinstance(error, MemoryStoreError) and error.code in ("unavailable", "write_unconfirmed"):
                raise
            report.left.append((name, str(error)))
            continue
        there[entry.memory_type, title] = file
        report.imported.append(name)
        if (title, description) != (entry.title, entry.description):
            report.shortened.append(name)
    no_text = await asyncio.to_thread(lambda: [each for place in _places(root) for each in _no_text(place)])
    report.left += [(f"{into.user_id}: {name}", "It is not UTF-8 text.") for name in no_text]
    try:
        await _import_rules(root, into, report)
    except MemoryStoreError as error:
        if error.code in ("unavailable", "write_unconfirmed"):
            raise
        report.left.append((f"{into.user_id}: {into.config.agent_md}", str(error)))


async def _entries(root: Path) -> AsyncIterator[MemoryEntry]:
    """The oldest first, so that the newest stays the newest."""
    for folder in await asyncio.to_thread(_places, root):
        directory = folder.relative_to(root).as_posix() if folder != root else ""
        place = Workspace.folder(root, WorkspaceConfig(memory_dir=directory), embedder=None)
        for each in (await place.list_entries())[::-1]:
            if not each.file.startswith(f"{_CANDIDATES}/"):
                yield await place.read_entry(each.file)


def _places(root: Path) -> list[Path]:
    """Where a user's entries are, and the candidates."""
    entries = root / "memory"
    return [each for each in (entries if is_directory(entries) else root, root / _CANDIDATES) if is_directory(each)]


def _no_text(folder: Path) -> list[str]:
    """What looks like an entry, but is passed over by a memory."""
    found = []
    for each in sorted(folder.glob("[!.]*.md")):
        if each.name not in (WorkspaceConfig().agent_md, WorkspaceConfig().memory_md) and is_file(each):
            try:
                each.read_bytes().decode()
            except UnicodeDecodeError:
                found.append(each.name)
    return found


def _fitted(entry: MemoryEntry) -> tuple[str, str, str]:
    title, description, content = entry.title, entry.description, entry.content
    cut = [text for text in (title, description) if len(text) > _LONGEST]
    if cut:
        content = "\n\n".join([*cut, content])
    return title[:_LONGEST].strip(), description[:_LONGEST].strip(), content


async def _import_rules(root: Path, into: Workspace, report: ImportReport) -> None:
    name = into.config.agent_md
    theirs = await find(Workspace.folder(root, embedder=None).store, WorkspaceConfig().agent_md)
    ours = await find(into.store, name)
    if theirs is None or not theirs.text.strip() or (ours is not None and ours.text == theirs.text):
        return
    if ours is not None and ours.text.strip():
        report.left.append((f"{into.user_id}: {name}", "There are standing rules already; compare them by hand."))
        return
    await into.store.write(name, theirs.text, expected=ours.version if ours is not None else None, origin=Origin())
    report.imported.append(f"{into.user_id}: {name}")
