"""The log of one session: every message of a conversation, a JSON object a line, in a private file."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from memshelf.arguments import checked_argument, checked_path
from memshelf.errors import MemoryStoreError
from memshelf.storage.ids import Mint, micros
from memshelf.storage.journal import Journal, Lines
from memshelf.threads.listing import SessionInfo, inspect
from memshelf.threads.rows import Row, RowType, check_fields, check_type, decode, encode, session_name, strings
from memshelf.threads.sealing import sealing
from memshelf.threads.search import search
from memshelf.threads.transcript import transcript

__all__ = ["SessionLog"]

_LOG = logging.getLogger(__name__)
_NAME_CHARS = 200
_LINES_NAMED = 10
_NEW_ROW = Mint()


class SessionLog:
    """One session in `<directory>/<session_id>.jsonl`. Rows are only ever appended.

    A row is a JSON object with `type`, `id`, `parent_id` (the row before it), `session_id`, `timestamp`, `content`, and
    what its type needs. An append either returns with its rows in the file, whole, or raises: `invalid_value` for what
    is no row, `unavailable` where the system refuses, `write_unconfirmed` if a sync fails. With `durable`, rows also
    survive a loss of power. Any number of processes and threads may append. A crash can lose the row being written,
    and no other: what is no row, such as a line torn by it or broken by hand, is skipped with a warning.

    The file can be read by its user only. It holds the conversation as it is, secrets included. Making the object
    touches nothing on the disk; an id that is no file name of its own is `invalid_value`.
    """

    def __init__(
        self,
        session_id: str,
        directory: str | os.PathLike[str] = ".sessions",
        *,
        durable: bool = True,
        mint: Mint = _NEW_ROW,
    ) -> None:
        self.session_id = session_name(session_id)
        self.directory = _place("directory", directory)
        self.path = os.path.join(self.directory, f"{self.session_id}.jsonl")
        self._durable = checked_argument("durable", durable, bool)
        self._journal = Journal(self.path, durable=durable)
        self._mint = mint
        self._end: tuple[int, str | None] = (0, None)  # where this object last wrote to, and the id of the row there

    def __repr__(self) -> str:
        return f"SessionLog({self.session_id!r}, {self.directory!r})"

    def exists(self) -> bool:
        """Whether the session has a file. `unavailable`."""
        return self._journal.exists()

    def append(self, type: RowType, content: object = None, **fields: object) -> Row:
        """Append one row, and return it."""
        return self.extend([{"type": type, "content": content, **fields}])[0]

    def extend(self, rows: Iterable[Row]) -> list[Row]:
        """Append rows, each with `type`, `content` and fields of its own, with nobody else's between; return them."""
        given = list(checked_argument("rows", rows, Iterable))
        for row in given:
            check_type(checked_argument("row", row, dict).get("type", ""))
            check_fields(row.keys() - {"type", "content"})
        return self._append(lambda _: given)

    def boundary(self, summary: str, *, keep: Sequence[str] = ()) -> Row:
        """Append a `compact_boundary`: from now on, `load` begins with it instead of what came before.

        `keep` are the ids of earlier rows that still belong to the conversation. All rows stay in the file.
        """
        checked_argument("summary", summary, str)
        return self.append("compact_boundary", summary, keep=list(checked_argument("keep", keep, Sequence)))

    def retract(self, row_ids: Sequence[str]) -> Row:
        """Append that these rows are no part of the conversation any more: `load` leaves them out. They stay for search
        and export. For a question that is taken back, or asked again otherwise.
        """
        return self.append("event", None, event="retracted", rows=list(checked_argument("row_ids", row_ids, Sequence)))

    def seal(self, *, suspended: bool = False) -> list[Row]:
        """Close a turn that was cut short, and return the rows that do: none if the last turn ended.

        A tool call without a result gets one that says so. A turn that waits for answers, such as approvals, is only
        closed with `suspended`.
        """
        checked_argument("suspended", suspended, bool)
        if not self.exists():
            return []
        return self._append(lambda lines: sealing(self._resumed(lines), suspended=suspended))

    def load(self) -> list[Row]:
        """The rows to go on with: the last boundary and the rows it keeps, then what follows; else all rows.

        What lies before them is not read. `[]` for a session that has no file.
        """
        with self._journal.reading() as lines:
            return self._resumed(lines)

    def rows(self) -> Iterator[Row]:
        """Every row from the first, whatever boundaries there are."""
        with self._journal.reading() as lines:
            yield from self._decoded(lines.forwards(), lines)

    def search(self, query: str, limit: int = 10) -> list[Row]:
        """The rows that say most of what `query` names, the best first, at most `limit`. Chinese needs no spaces."""
        checked_argument("query", query, str)
        return search(query, self.rows(), checked_argument("limit", limit, int))

    def fork(self, new_session_id: str, at: str | None = None) -> SessionLog:
        """A new session that begins with this one's rows, up to and including the row with the id `at` (`None`: all).

        It appears whole or not at all. An id that is taken is `already_exists`, and nothing is written to it. A
        session or a row that does not exist is `not_found`.
        """
        forked = SessionLog(new_session_id, self.directory, durable=self._durable, mint=self._mint)
        rows: list[Row] = []
        for row in self.rows():
            rows.append({**row, "session_id": forked.session_id})
            if row.get("id") == at and at is not None:
                break
        else:
            if at is not None or not rows:
                raise MemoryStoreError(
                    "not_found", f"Session {self.session_id} has no {f'row {at}' if at else 'rows'}."
                )
        origin = {"event": "forked", "from_session": self.session_id, "from_row": rows[-1].get("id")}
        rows.append(forked._row({"type": "event", "content": None, **origin}, rows[-1].get("id")))
        forked.create(rows)
        return forked

    def create(self, rows: Iterable[Row]) -> None:
        """Begin the session with rows of another one, such as those of an export, which keep their ids and times.

        It appears whole or not at all. `already_exists` for a session that has a file, to which nothing is written;
        `invalid_value` for what is no row, or for no rows.
        """
        given = checked_argument("rows", rows, Iterable)
        lines = [encode({**checked_argument("row", row, dict), "session_id": self.session_id}) for row in given]
        if not lines or None in map(decode, lines):
            raise MemoryStoreError("invalid_value", "A session begins with rows; these are none.")
        try:
            self._journal.create(lines, make=True)
        except FileExistsError:
            raise MemoryStoreError("already_exists", f"Session {self.session_id} exists already.") from None

    def rename(self, name: str) -> None:
        """Give the session a name that people see in listings. Its id stays."""
        shown = " ".join(checked_argument("name", name, str).split())
        if not shown or len(shown) > _NAME_CHARS or not shown.isprintable():
            raise MemoryStoreError("invalid_value", f"A session's name is 1 to {_NAME_CHARS} printable characters.")
        self.append("event", None, event="renamed", name=shown)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all rows to a new private file: as Markdown to read if it ends in `.md`, else as they are.

        A file that exists is `already_exists`; a session that does not is `not_found`.
        """
        place = _place("path", path)
        if not self.exists():
            raise MemoryStoreError("not_found", f"There is no session {self.session_id}.")
        lines: Iterable[bytes] = map(encode, self.rows())
        if os.fspath(path).endswith(".md"):
            lines = (part.encode(errors="replace") for part in transcript(self.rows()))
        try:
            Journal(place, durable=self._durable).create(lines)
        except FileExistsError:
            raise MemoryStoreError("already_exists", f"{os.fspath(path)} exists already.") from None

    def delete(self) -> bool:
        """Remove the session for good; whether there was one."""
        return self._journal.remove()

    @staticmethod
    def list_sessions(directory: str | os.PathLike[str] = ".sessions") -> list[SessionInfo]:
        """The sessions of a directory, the one that was used last first. `[]` if there is no such directory;
        `unavailable` for one that cannot be read. A session whose file cannot be read has no name and no preview."""
        return inspect(_place("directory", directory))

    def _append(self, make: Callable[[Lines], Iterable[Row]]) -> list[Row]:
        appended: list[Row] = []
        end = self._end

        def encoded(lines: Lines) -> bytes:
            nonlocal end
            parent = self._last_id(lines)
            for row in make(lines):
                appended.append(self._row(row, parent))
                parent = appended[-1]["id"]
            data = b"".join(map(encode, appended))
            end = (lines.size + len(data) + lines.torn, parent) if data else self._end
            return data

        self._journal.append(encoded)
        self._end = end
        return appended

    def _row(self, row: Row, parent: str | None) -> Row:
        moment = self._mint.clock()
        ids = {"id": self._mint.id("row", micros(moment)), "parent_id": parent, "session_id": self.session_id}
        timestamp = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
        return {"type": row["type"], **ids, "timestamp": timestamp, "content": row.get("content"), **_fields(row)}

    def _last_id(self, lines: Lines) -> str | None:
        size, known = self._end
        if lines.size == size:
            return known
        last = next((row for line in lines.backwards() if (row := decode(line)) is not None), None)
        return last.get("id") if last is not None else None

    def _resumed(self, lines: Lines) -> list[Row]:
        following: list[Row] = []
        kept: list[Row] = []
        boundary: Row | None = None
        wanted: set[str] = set()
        gone: set[str] = set()
        seen: dict[str | None, Row] = {}
        for row in self._decoded(lines.backwards(), lines, from_the_end=True):
            row_id = row.get("id")
            if row_id is not None and row == seen.get(row_id):
                continue  # copies of the file were put together; an id alone may be another program's
            seen[row_id] = row
            if row["type"] == "event" and row.get("event") == "retracted":
                gone.update(strings(row.get("rows")))
            if row_id in gone:
                continue
            if boundary is None and row["type"] != "compact_boundary":
                following.append(row)
            elif boundary is None:
                boundary, wanted = row, set(strings(row.get("keep")))
            elif row_id in wanted:
                wanted.discard(row_id)
                kept.append(row)
            if boundary is not None and not wanted:
                break
        return [*([boundary] if boundary is not None else []), *reversed(kept), *reversed(following)]

    def _decoded(self, read: Iterable[bytes], lines: Lines, *, from_the_end: bool = False) -> Iterator[Row]:
        skipped: list[int] = []
        try:
            for number, line in enumerate(read, start=1):
                row = decode(line)
                if row is not None:
                    yield row
                elif line.strip():
                    skipped.append(number)
        finally:
            if skipped:
                behind = lines.count() + 1
                numbers = [behind - each for each in skipped[::-1]] if from_the_end else skipped
                shown = ", ".join(map(str, numbers[:_LINES_NAMED])) + (", ..." if numbers[_LINES_NAMED:] else "")
                _LOG.warning("Session %s: skipped what is no row, in line %s of %s", self.session_id, shown, self.path)


def _place(name: str, path: str | os.PathLike[str]) -> str:
    """Where a path leads to now, also when the process moves."""
    return os.path.abspath(checked_path(name, path))


def _fields(row: Row) -> dict[str, Any]:  # Any: JSON
    return {key: value for key, value in row.items() if key not in ("type", "content")}
