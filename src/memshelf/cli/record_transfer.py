"""`memshelf records import | export`: records from JSON lines, from mem0, and to JSON lines."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import IO, TYPE_CHECKING

import click

from memshelf.cli import render
from memshelf.cli.carried import force_option, new_file, readable_file
from memshelf.cli.command import Unavailable, disk_paths, in_words_of_options, json_option
from memshelf.cli.memory import origin, some_of
from memshelf.cli.record_place import RecordPlace, on_records, opened_records
from memshelf.cli.records import records
from memshelf.errors import MemoryStoreError
from memshelf.origin import Origin
from memshelf.records.lines import FIELDS, Line, Met, line_of, read_lines
from memshelf.records.model import MemoryRecord, NewRecord
from memshelf.records.protocol import RecordStore
from memshelf.records.text import validate_record_text

if TYPE_CHECKING:
    from memshelf.records.backends.sql.store import SqlRecordStore

__all__: list[str] = []

_PAGE = 200
_BATCH = 64
_MOST_CHARS = 100_000
_PLATFORM = "https://api.mem0.ai"


@records.command(name="export")
@json_option
@force_option
@click.argument("file", shell_complete=disk_paths)
@on_records
async def export_records(place: RecordPlace, file: str, *, force: bool, as_json: bool) -> None:
    """Write every record as JSON lines into FILE, or - for standard output, for `memshelf records import`.

    A name that ends in .gz compresses it.

    \b
    Examples:
      memshelf records export records.jsonl --memory user.db
      memshelf records export - --memory user.db | jq -r .text
    """
    written = 0
    replaced: dict[str, str] = {}
    async with opened_records(place) as store, aclosing(_every(store)) as found:
        with new_file(file, force=force) as out:
            async for record in found:
                # A record stands after the one that it replaces.
                out.write(line_of(record, replaced.pop(record.id, None)))
                if record.replaced_by is not None:
                    replaced[record.replaced_by] = record.id
                written += 1
    if as_json and file != "-":
        render.document({"file": file, "records": written})
    elif file != "-":
        render.line(f"Exported {render.counted(written, 'record')} to {render.visible_line(file)}")


@records.command(name="import")
@json_option
@click.option("--mem0", "url", metavar="URL", help=f"Import from a mem0 server instead, such as {_PLATFORM}.")
@click.option("--user", metavar="USER", help="Only the records of this mem0 user; needed with --mem0.")
@click.option(
    "--mem0-key", "key", metavar="KEY", envvar="MEM0_API_KEY", show_envvar=True, help="The API key of that server."
)
@click.argument("file", required=False, shell_complete=disk_paths)
@on_records
async def import_records(
    place: RecordPlace, file: str | None, *, url: str | None, user: str | None, key: str | None, as_json: bool
) -> None:
    """Import records: JSON lines or what mem0 exports, from FILE or - for standard input; or from a mem0 server.

    A line is a JSON object with a `text`, and maybe `at`, `updated_at`, `revised`, `thread`, `origin`, `id` and
    `replaces`; a warning names fields that are not known. What is there already is not added again, so an import that
    was stopped is finished by calling it again. A damaged file is refused as a whole; of a server, a record that is
    blank or too long is left out. Without --user, the records of all users of a file are imported, and a warning names
    the users if there are several.

    \b
    Examples:
      memshelf records import records.jsonl --memory user.db
      memshelf records import mem0.json --user ann --memory user.db --namespace ann
      memshelf records import --mem0 http://localhost:8888 --user ann --memory user.db --namespace ann
    """
    if (file is None) == (url is None):
        raise click.UsageError("Give a FILE, or --mem0 URL.")
    done = _Import()
    with _says_how_far(done):
        if url is not None:
            async with _mem0(url, user, key) as source, opened_records(place, create=True) as store:
                with render.progress("Importing") as progress:
                    await _from_server(source, store, done, progress)
        else:
            with readable_file(str(file)) as read:
                await _from_file(read, place, user, done)
    if as_json:
        counts = {"added": done.added, "present": done.present}
        left_out = {"left_out": done.left_out} if url is not None else {}  # a file is taken whole
        told = {name: value for name in ("users", "ignored") if (value := getattr(done, name))}
        render.document({"namespace": place.namespace, **counts, **left_out, **told})
    else:
        ending = f", {done.left_out} left out" if done.left_out else ""
        render.line(f"Imported: {render.counted(done.added, 'record')} added, {render.present(done.present)}{ending}")
    if done.left_out:
        raise click.exceptions.Exit(1)


@dataclass(slots=True)
class _Import:
    """What others have added, by content, up to a position, and what came of the records so far."""

    position: int = 0
    known: dict[object, list[str]] = field(default_factory=lambda: defaultdict(list))
    ids: dict[str, str] = field(default_factory=dict)
    """The ids that records had where they come from, and those that they have here."""
    users: Sequence[str] = ()
    """Whose records are imported together, if they are those of several."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Names of fields that are not imported, and how many records have them."""
    added: int = 0
    present: int = 0
    left_out: int = 0


@contextmanager
def _says_how_far(done: _Import) -> Iterator[None]:
    """Let who interrupts an import know what it has done. What is being written meanwhile may be in, too."""
    try:
        yield
    except asyncio.CancelledError:
        if not done.added + done.present:
            raise
        counts = f"{render.counted(done.added, 'record')} added, {render.present(done.present)}"
        raise click.Abort(f"Stopped: at least {counts}; call it again to go on.") from None


async def _from_file(read: Callable[[], IO[bytes]], place: RecordPlace, user: str | None, done: _Import) -> None:
    who = replace(origin(), kind="import")
    met = Met()
    with read() as stream:
        total = sum(1 for _ in read_lines(stream, origin=who, max_chars=_MOST_CHARS, user=user, met=met))
    _say_whose(sorted(met.users), user, total, done)
    _say_what_is_ignored(met.unknown, done)
    async with opened_records(place, create=True) as store:
        await _learn(store, done)
        with read() as stream, render.progress("Importing") as progress:
            lines = read_lines(stream, origin=who, max_chars=_MOST_CHARS, user=user)
            while batch := list(islice(lines, _BATCH)):
                await _add(store, batch, done)
                progress(done.added + done.present, total)


def _say_whose(users: Sequence[str], user: str | None, total: int, done: _Import) -> None:
    """`not_found` when the file has none of the user's records; a warning when it has those of several, mixed."""
    if user is not None and not total:
        held = f"Users whose records it has: {some_of(users)}."
        raise MemoryStoreError("not_found", f"The file has no records of {user}. {held} Nothing was imported.")
    if user is None and len(users) > 1:
        done.users = users
        names = render.visible_line(some_of(users))
        render.note(f"warning: The file has records of several users, which are mixed: {names}.")
        render.note("To import those of one of them: --user NAME, with a --namespace of their own.")


def _say_what_is_ignored(unknown: Mapping[str, int], done: _Import) -> None:
    done.ignored = dict(sorted(unknown.items()))
    if done.ignored:
        names = [f"{name} (in {render.counted(count, 'record')})" for name, count in done.ignored.items()]
        render.note(f"warning: Some fields are not known, and not imported: {render.visible_line(some_of(names))}.")
        render.note(f"Those of a record are {', '.join(FIELDS)}.")


async def _from_server(
    source: RecordStore, store: SqlRecordStore, done: _Import, progress: Callable[[int, int], None]
) -> None:
    await _learn(store, done)
    who = replace(origin(), kind="import")
    cursor: str | None = None
    while True:
        try:
            page = await source.list(limit=_PAGE, cursor=cursor)
        except MemoryStoreError as error:  # as it is no failure of the database, which would be named
            raise Unavailable(error.message) from None
        cursor = page.next_cursor
        batch = [Line(_new(record, who), record.id) for record in page.records if _is_record(record, done)]
        await _add(store, batch, done)
        count = done.added + done.present + done.left_out
        progress(count, count if cursor is None else count + _PAGE)
        if cursor is None:
            return


def _new(record: MemoryRecord, who: Origin) -> NewRecord:
    return NewRecord(text=record.text, at=record.at or record.updated_at, origin=who, updated_at=record.updated_at)


def _is_record(record: MemoryRecord, done: _Import) -> bool:
    """Whether the text of a server's record can be one of ours. One that cannot does not keep the others away."""
    try:
        validate_record_text(record.text, max_chars=_MOST_CHARS)
    except MemoryStoreError as error:
        reason = error.message.removesuffix("; nothing changed.")
        render.note(f"Left out {render.visible_line(record.id)}: {reason}.")
        done.left_out += 1
        return False
    return True


async def _learn(store: SqlRecordStore, done: _Import) -> None:
    while await _added(store, [], done) is None:
        pass


async def _added(store: SqlRecordStore, records: list[NewRecord], done: _Import) -> list[MemoryRecord] | None:
    """Add records; or learn what others, such as another import of the same, have added meanwhile: then `None`."""
    added, others, done.position = await store.add_unless_others(records, done.position)
    for record in others:
        for key in _keys(record.text, record.thread, record.at):
            done.known[key].append(record.id)
    return added if not others else None


def _keys(content: str, thread: str | None, at: datetime | None) -> list[object]:
    return [(content, thread), (content, thread, at)] if at is not None else [(content, thread)]


def _is_there(line: Line, done: _Import) -> bool:
    """Whether others have added the record. Each of theirs stands for one of ours."""
    record = line.record
    there = done.known.get(_keys(record.text, record.thread, record.at)[-1])
    if not there:
        return False
    done.present += 1
    if line.id is not None:
        done.ids[line.id] = there[0]
    there.pop(0)
    return True


async def _add(store: SqlRecordStore, lines: Iterable[Line], done: _Import) -> None:
    new: list[Line] = []
    for line in lines:
        if line.record.replaces in {each.id for each in new if each.id is not None}:
            await _commit(store, new, done)
        if not _is_there(line, done):
            new.append(line)
    await _commit(store, new, done)


async def _commit(store: SqlRecordStore, new: list[Line], done: _Import) -> None:
    while new:
        ours = [
            replace(line.record, replaces=done.ids.get(line.record.replaces, line.record.replaces))
            if line.record.replaces is not None
            else line.record
            for line in new
        ]
        try:
            added = await _added(store, ours, done)
        except MemoryStoreError as error:
            if done.added:
                error.add_note(f"{render.counted(done.added, 'record')} added before; call it again to go on.")
            raise
        if added is None:
            new[:] = [line for line in new if not _is_there(line, done)]
            continue
        for line, record in zip(new, added, strict=True):
            if line.id is not None:
                done.ids[line.id] = record.id
        done.added += len(new)
        new.clear()


async def _every(store: SqlRecordStore) -> AsyncGenerator[MemoryRecord, None]:
    cursor: str | None = None
    while True:
        page = await store.list(limit=_PAGE, cursor=cursor)
        for record in page.records:
            yield record
        cursor = page.next_cursor
        if cursor is None:
            return


@asynccontextmanager
async def _mem0(url: str, user: str | None, key: str | None) -> AsyncIterator[RecordStore]:
    """The records of a user of a mem0 server: of the platform, or of one that anybody runs, also on this machine."""
    if user is None:
        raise click.UsageError("Say whose records, as the server knows the user: --user USER.")
    try:
        import httpx2  # an optional package

        from memshelf.records.backends.mem0.definition import MEM0_OSS, MEM0_PLATFORM
    except ImportError as error:
        raise Unavailable(f'A mem0 server needs the extra "http": pip install "memshelf[http]" ({error}).') from None
    platform = url.rstrip("/") == _PLATFORM
    if platform and not key:
        raise click.UsageError("mem0's platform asks for a key: --mem0-key KEY, or the variable MEM0_API_KEY.")
    credential = {"api_key": key} if key else None
    async with httpx2.AsyncClient(trust_env=False) as http:
        with in_words_of_options(base_url="--mem0", api_key="--mem0-key", namespace="--user"):
            if platform:
                opening = MEM0_PLATFORM.open({}, credential, namespace=user)
            else:  # whoever names a server on the command line may mean one on this machine
                opening = MEM0_OSS.open({"base_url": url}, credential, namespace=user, http=http)
        async with opening as store:
            yield store
