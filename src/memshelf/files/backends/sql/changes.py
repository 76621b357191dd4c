"""What changes a file memory, each within one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.sql.memory import VERSION_OF_CALL, Head, Memory, find_memory
from memshelf.files.backends.sql.of_file import newest, oldest
from memshelf.files.backends.sql.paths import LIVE_FILE, forget_free, obstacles
from memshelf.files.backends.sql.rows import Live
from memshelf.files.chain import SALT_BYTES, Facts, commitment, genesis, link
from memshelf.files.decide import Commit, Move, Request, Write, decide, replay
from memshelf.files.model import FileText, Version
from memshelf.limits import FileFormat
from memshelf.origin import Origin
from memshelf.storage.ids import Mint
from memshelf.storage.transaction import Change, Keyed, Transaction

__all__ = [
    "INSERT_FILE",
    "Recording",
    "announced",
    "apply",
    "create_memory",
    "erase",
    "purge",
    "record",
    "redact",
    "restore",
]

_INSERT_VERSION = (
    "INSERT INTO file_versions (memory_id, seq, id, file_id, parent_id, operation, moved, path, sha256, size, salt, "
    "commitment, link, run_id, principal_id, tool_call_id, session_id, api_key_id, created_at, content) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)"
)
_MOVE_HEAD = "UPDATE memories SET head_seq = $2, head_link = $3, files = $4 WHERE id = $1"
INSERT_FILE = (
    "INSERT INTO files (memory_id, path, file_id, version_id, size, description, created_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
_INSERT_PLACE = "INSERT INTO file_places (memory_id, path, file_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_UPDATE_FILE = "UPDATE files SET version_id = $1, size = $2, description = $3 WHERE memory_id = $4 AND path = $5"
# Its own statement: to set the path, though to what it is, has SQLite write every index of the row anew.
_MOVE_FILE = (
    "UPDATE files SET version_id = $1, size = $2, description = $3, path = $6 WHERE memory_id = $4 AND path = $5"
)
_DELETE_FILE = "DELETE FROM files WHERE memory_id = $1 AND path = $2"


async def create_memory(transaction: Transaction, name: str, mint: Mint) -> int:
    """The id of the memory of that name, which is there from now on."""
    epoch = mint.random(16).hex()
    await transaction.execute(
        "INSERT INTO memories (name, epoch, head_seq, head_link, created_at) VALUES ($1, $2, 0, $3, $4) "
        "ON CONFLICT (name) DO NOTHING",
        name,
        epoch,
        genesis(epoch),
        mint.now(),
    )
    found = await find_memory(transaction, name)
    assert found is not None  # noqa: S101  # it was inserted, or was there
    return found


async def apply(memory: Memory, request: Request, origin: Origin, mint: Mint, version_id: str | None = None) -> str:
    """Decide on a request and do it: the version that now stands, or that this tool call wrote when it came first.

    `version_id` is the id of the version that the request would write; when it is there, the request came before.
    """
    before = await memory.load(request.loads)
    if (recorded := await memory.recorded(origin, version_id)) is not None:
        return replay(request, recorded)
    obstacle = await memory.in_the_way(request.must_be_free)
    commit = decide(request, before.file if before is not None else None, obstacle)
    if commit is None:
        assert before is not None  # noqa: S101  # only an existing file can already be as asked
        return before.file.version
    description = before.description if before is not None else None
    if isinstance(request, Write) or (isinstance(request, Move) and request.text is not None):
        description = request.description
    return (await record(memory, commit, before, description, origin, mint, version_id)).facts.id


def announced(request: Request, origin: Origin) -> list[Keyed]:
    """What `apply` looks up by a key."""
    looked_up = list[Keyed]()
    if request.loads is not None:
        looked_up.append((LIVE_FILE, (request.loads,)))
    if origin.run_id is not None and origin.tool_call_id is not None:
        looked_up.append((VERSION_OF_CALL, (origin.run_id, origin.tool_call_id)))
    if request.must_be_free is not None:
        looked_up += obstacles(request.must_be_free)
    return looked_up


async def restore(
    memory: Memory, version_id: str, expected: str | None, origin: Origin, format: FileFormat, mint: Mint
) -> str:
    await memory.locked()
    version = await memory.version(version_id)
    if version.path is None or version.text is None:
        raise MemoryStoreError("not_found", f"Version {version_id} has no content to restore; nothing changed.")
    return await apply(memory, Write.checked(version.path, version.text, expected, format), origin, mint)


class Recording(NamedTuple):
    """A version that was written: its facts, and the file that it left behind, if any."""

    facts: Facts
    path: str
    sha256: str | None
    size: int | None
    file_created_at: int


async def record(
    memory: Memory,
    commit: Commit,
    before: Live | None,
    description: str | None,
    origin: Origin,
    mint: Mint,
    version_id: str | None = None,
) -> Recording:
    """Append a version to the history and make the live files follow it. The memory is locked."""
    head = await memory.locked()
    now, salt = mint.now(), mint.random(SALT_BYTES)
    if before is not None:  # whatever a clock says that was set back, or another machine's that is late
        now = max(now, before.changed_at + 1)
    content = commit.data if commit.operation != "deleted" else None
    sha256 = hashlib.sha256(content).hexdigest() if content is not None else None
    size = len(content) if content is not None else None
    facts = Facts(
        id=version_id or mint.id("memver", now),
        seq=head.seq + 1,
        file_id=before.file_id if before is not None else mint.id("mem", now),
        parent_id=before.file.version if before is not None else None,
        operation=commit.operation,
        moved=commit.source is not None,
        origin=origin,
        created_at=now,
        commitment=commitment(salt, commit.path, sha256, size),
    )
    sealed = link(head.link, facts)
    created_at = before.created_at if before is not None else now
    version = (
        memory.id,
        facts.seq,
        facts.id,
        facts.file_id,
        facts.parent_id,
        facts.operation,
        int(facts.moved),
        commit.path,
        sha256,
        size,
        salt,
        facts.commitment,
        sealed,
        origin.run_id,
        origin.principal_id,
        origin.tool_call_id,
        origin.session_id,
        origin.api_key_id,
        now,
        content,
    )
    files = head.files + (commit.operation == "created") - (commit.operation == "deleted")
    line = description.encode() if description is not None else None
    live: Change
    if before is None:
        live = INSERT_FILE, (memory.id, commit.path, facts.file_id, facts.id, size, line, created_at)
    elif content is None:
        live = _DELETE_FILE, (memory.id, before.file.path)
    elif not facts.moved:
        live = _UPDATE_FILE, (facts.id, size, line, memory.id, commit.path)
    else:
        live = _MOVE_FILE, (facts.id, size, line, memory.id, before.file.path, commit.path)
    changes: list[Change] = [(_INSERT_VERSION, version), live]
    transaction = memory.transaction
    transaction.forget(facts.file_id)
    if before is not None:
        transaction.forget(before.file.path)
    if before is None or facts.moved:
        changes.append((_INSERT_PLACE, (memory.id, commit.path, facts.file_id)))
        forget_free(transaction, commit.path)
    if origin.run_id is not None and origin.tool_call_id is not None:
        transaction.forget(origin.run_id, origin.tool_call_id)
    said = files == head.files and transaction.heads != "memories"
    stands = None if said else (_MOVE_HEAD, (memory.id, facts.seq, sealed, files))
    await transaction.change(*changes, of=facts.file_id, stands=stands)
    memory.stands = Head(head.epoch, facts.seq, sealed, files)
    memory.last = None
    if sha256 is not None and size is not None:
        file = FileText(commit.path, commit.text, facts.id)
        memory.last = Live(file, facts.file_id, size, description, created_at, now, sha256)
    return Recording(facts, commit.path, sha256, size, created_at)


async def redact(memory: Memory, version_id: str, by: str, mint: Mint) -> Version:
    await memory.locked()
    version = await memory.version(version_id)
    if version.redacted_at is not None:
        return version
    live = await memory.live(version.path)
    if live is not None and live.file.version == version_id:
        raise MemoryStoreError(
            "forbidden",
            f"Version {version_id} is what its file holds now; nothing changed. Change or delete the file first.",
        )
    await erase(memory, {version_id: version.file_id}, by, mint)
    return await memory.version(version_id)


async def erase(memory: Memory, versions: Mapping[str, str], by: str, mint: Mint) -> int:
    """Erase the paths and contents of versions, given with their files' ids; how many that were. The memory is locked.

    A version that is erased already stays as it is, and so does one that its file holds now.
    """
    ids = list(versions)
    # The plus keeps an engine from reading all versions of the memory for some ids.
    rows = await memory.all(
        f"SELECT path, max(seq) FROM file_versions WHERE +memory_id = $1 AND id IN ({_marks(2, ids)}) GROUP BY path",  # noqa: S608  # marks
        *ids,
    )
    erased = await memory.transaction.execute(
        "UPDATE file_versions SET path = NULL, sha256 = NULL, size = NULL, salt = NULL, content = NULL, "  # noqa: S608  # marks
        f"redacted_at = $1, redacted_by = $2 WHERE +memory_id = $3 AND id IN ({_marks(4, ids)}) "
        "AND redacted_at IS NULL AND NOT EXISTS (SELECT 1 FROM files f WHERE f.memory_id = $3 "
        "AND f.version_id = file_versions.id AND f.file_id = file_versions.file_id)",
        mint.now(),
        by,
        memory.id,
        *ids,
    )
    if erased:
        paths = sorted(path for path, _ in rows if path is not None)
        await _leave_places(memory, paths, sorted(set(versions.values())), 1 + max(seq for _, seq in rows))
        await _want_erasure(memory)
    return erased


async def _leave_places(memory: Memory, paths: Sequence[str], files: Sequence[str], beyond: int) -> None:
    """Forget that the files stood at the paths of which no version says so any more. The numbers of what was erased lie
    before `beyond`: what is past is erased in its order, so mostly the next version says so."""
    says_so = " AND n.path = file_places.path"
    # The files' ids are compared so that no engine reads all places for them.
    await memory.transaction.execute(
        f"DELETE FROM file_places WHERE memory_id = $1 AND path IN ({_marks(3, paths)}) "  # noqa: S608  # marks
        f"AND file_id || '' IN ({_marks(3 + len(paths), files)}) "
        f"AND {oldest('file_places', since='$2', where=says_so)} IS NULL "
        f"AND {newest('file_places', before='$2', where=says_so)} IS NULL",
        memory.id,
        beyond,
        *paths,
        *files,
    )


def _marks(first: int, values: Sequence[str]) -> str:
    return ", ".join(f"${number}" for number in range(first, first + len(values)))


async def purge(memory: Memory, mint: Mint) -> None:
    """Remove the files and the history, and begin a new one, in which no cursor of the old one is known."""
    await memory.locked()
    epoch = mint.random(16).hex()
    execute = memory.transaction.execute
    await execute("DELETE FROM files WHERE memory_id = $1", memory.id)
    await execute("DELETE FROM file_places WHERE memory_id = $1", memory.id)
    await execute("DELETE FROM file_versions WHERE memory_id = $1", memory.id)
    await execute(
        "UPDATE memories SET epoch = $1, head_seq = 0, head_link = $2, files = 0 WHERE id = $3",
        epoch,
        genesis(epoch),
        memory.id,
    )
    memory.stands = memory.last = None
    await _want_erasure(memory)


async def _want_erasure(memory: Memory) -> None:
    await memory.transaction.execute("UPDATE erasures SET wanted = wanted + 1")
