"""`memshelf records`: short texts that are recalled by meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from memshelf.cli import render, times
from memshelf.cli.command import (
    CommandGroup,
    TextCommand,
    confirmed,
    json_option,
    limit_option,
    question,
    text,
    typed_or_piped,
    yes_option,
)
from memshelf.cli.memory import origin
from memshelf.cli.record_place import RecordPlace, namespaces_of, on_record_database, on_records, opened_records
from memshelf.records.lines import record_json
from memshelf.records.model import MemoryRecord

if TYPE_CHECKING:
    from memshelf.records.backends.sql.store import SqlRecordStore

__all__ = ["records"]

_MOST_BYTES = 400_000


@click.group(cls=CommandGroup)
def records() -> None:
    """Add, find and change records: short texts that are recalled by meaning.

    Records are kept in a SQLite file (--memory) or a PostgreSQL database (--database), each user's, agent's or
    project's in a --namespace of its own. Chinese and English texts are found by questions in either language.

    \b
    Examples:
      memshelf records add "Likes green tea." --memory user.db
      memshelf records search "what does she drink?" --memory user.db
      memshelf records import mem0-export.json --memory user.db --namespace ann
    """


@records.command(cls=TextCommand)
@json_option
@click.option("--at", metavar="TIME", help="When it happened, if not now; an ISO 8601 time, such as 2026-05-01T12:00.")
@click.option("--thread", metavar="NAME", help="The conversation that it is a turn of.")
@click.option("--replaces", metavar="ID", help="The record that it corrects.")
@click.argument("content", type=text, required=False)
@on_records
async def add(
    place: RecordPlace,
    content: str | None,
    *,
    at: str | None,
    thread: str | None,
    replaces: str | None,
    as_json: bool,
) -> None:
    """Add a record: CONTENT, or else standard input. Creates the memory too if there is none yet.

    \b
    Examples:
      memshelf records add "Likes green tea." --memory user.db
      memshelf records add 周末常去西湖散步 --memory user.db --namespace ann
      memshelf records add "Moved to Lyon." --replaces REC --at 2026-05-01 --memory user.db
    """
    moment = times.parsed(at, "--at") if at is not None else None
    added = _text_of(content)
    async with opened_records(place, create=True) as store:
        record = await store.add(
            added, at=moment, thread=thread, origin=replace(origin(), kind="user"), replaces=replaces
        )
    _show(record, "Added", as_json=as_json)


@records.command(cls=TextCommand)
@json_option
@limit_option(5)
@click.option("--now", metavar="TIME", help='What "last week" in QUERY counts from, if not now; an ISO 8601 time.')
@click.argument("query", type=question)
@on_records
async def search(place: RecordPlace, query: str, *, limit: int, now: str | None, as_json: bool) -> None:
    """Find the records closest to QUERY in meaning, closest first. Finding nothing is not a failure.

    \b
    Examples:
      memshelf records search "what does she drink?" --memory user.db
      memshelf records search 上周去了哪里 --limit 10 --memory user.db --json
    """
    moment = times.here(now, "--now")
    async with opened_records(place) as store:
        found = await store.search(query, limit=limit, now=moment)
        await _say_what_is_not_indexed(store)
    if as_json:
        render.document({"query": query, "records": [record_json(record) for record in found]})
    else:
        rows = [[f"{record.score or 0:.2f}", *_row(record)] for record in found]
        header = ("SCORE", "TIME", "ID", "TEXT")
        render.table(rows, header=header, right=(0,), nothing="Nothing was found.")


async def _say_what_is_not_indexed(store: SqlRecordStore) -> None:
    if render.on_terminal() and (count := await store.unindexed()):
        render.note(f"Found by words only: {render.counted(count, 'record')}; `memshelf records reindex` changes that.")


@records.command(name="list")
@json_option
@limit_option(50)
@click.option("--cursor", metavar="CURSOR", help="Continue from the cursor at which the previous page ended.")
@on_records
async def list_records(place: RecordPlace, *, limit: int, cursor: str | None, as_json: bool) -> None:
    """List records in the order they were added. A terminal shows the beginnings of long ones; `show` all of one.

    \b
    Examples:
      memshelf records list --memory user.db
      memshelf records list --limit 200 --json --database postgresql://memshelf@localhost/memshelf
    """
    async with opened_records(place) as store:
        page = await store.list(limit=limit, cursor=cursor)
    if as_json:
        render.document({"records": [record_json(record) for record in page.records], "next_cursor": page.next_cursor})
        return
    rows = [_row(record) for record in page.records]
    render.table(rows, header=("TIME", "ID", "TEXT"), nothing="There are no records.")
    if page.next_cursor is not None:
        render.note(f"There are more: --cursor {page.next_cursor}")


@records.command()
@json_option
@click.argument("record_ids", metavar="ID...", nargs=-1, required=True)
@on_records
async def show(place: RecordPlace, record_ids: tuple[str, ...], *, as_json: bool) -> None:
    """Print whole records, with all that is known of them. When there is none of one of the IDs, none is printed.

    \b
    Examples:
      memshelf records show REC --memory user.db
      memshelf records show REC REC2 --memory user.db --json
    """
    async with opened_records(place) as store:
        found = [await store.get(record_id) for record_id in record_ids]
    if as_json:
        render.document({"records": [record_json(record) for record in found]})
        return
    for number, record in enumerate(found):
        if number:
            render.line("")
        render.table(_fields(record), header=("FIELD", "VALUE"), whole=True)
        render.show(f"\n{record.text}" if record.text.endswith("\n") else f"\n{record.text}\n")


@records.command()
@json_option
@on_record_database
async def namespaces(place: RecordPlace, *, as_json: bool) -> None:
    """List the namespaces of a file or a database, with how many records are in each.

    \b
    Examples:
      memshelf records namespaces --memory user.db
      memshelf records namespaces --json --database postgresql://memshelf@localhost/memshelf
    """
    found = await namespaces_of(place)
    if as_json:
        render.document({"namespaces": [{"namespace": name, "records": count} for name, count in found]})
    else:
        render.table(
            [(name, str(count)) for name, count in found],
            header=("NAMESPACE", "RECORDS"),
            right=(1,),
            nothing="There are no namespaces.",
        )


@records.command(cls=TextCommand)
@json_option
@click.argument("record_id", metavar="ID", type=text)
@click.argument("content", type=text, required=False)
@on_records
async def update(place: RecordPlace, record_id: str, content: str | None, *, as_json: bool) -> None:
    """Replace the whole text of a record with CONTENT, or else with standard input. There are no older versions.

    \b
    Examples:
      memshelf records update REC "Likes black tea." --memory user.db
    """
    new = _text_of(content)
    async with opened_records(place) as store:
        record = await store.update(record_id, new, origin=replace(origin(), kind="user"))
    _show(record, "Updated", as_json=as_json)


@records.command()
@json_option
@click.option("--all", "every", is_flag=True, help="Every record of the namespace, leaving nothing of them behind.")
@yes_option
@click.argument("record_ids", metavar="[ID]...", nargs=-1)
@on_records
async def rm(place: RecordPlace, record_ids: tuple[str, ...], *, every: bool, yes: bool, as_json: bool) -> None:
    """Delete records and leave nothing of them behind: those with the IDs, or with --all every record of the namespace.

    When there is no record of one of the IDs, none is deleted. Asks on a terminal; elsewhere, and with --json, say
    --yes.

    \b
    Examples:
      memshelf records rm REC --yes --memory user.db
      memshelf records rm --all --memory user.db --namespace ann
    """
    if every == bool(record_ids):
        raise click.UsageError("Give the IDs of records, or --all.")
    record_ids = tuple(dict.fromkeys(record_ids))
    async with opened_records(place) as store:
        if not yes:
            what = f"every record of {place.namespace}" if every else render.counted(len(record_ids), "record")
            question = f"Delete {render.visible_line(what)} for good?"
            confirmed(question, as_json=as_json)
        await (store.purge() if every else store.erase(record_ids))
    if as_json:
        render.document({"namespace": place.namespace, "deleted": None if every else list(record_ids)})
    elif every:
        render.line(f"Deleted every record of {render.visible_line(place.namespace)}")
    else:
        render.line(f"Deleted {render.counted(len(record_ids), 'record')}")


@records.command()
@json_option
@on_records
async def reindex(place: RecordPlace, *, as_json: bool) -> None:
    """Give every record vectors of the embedding model that is installed now, and drop those of any other.

    Records that were added without the extra "embed", or with another model, are found by their words only until then.
    Stopped, it goes on where it was when it is called again; others may search and write meanwhile.

    \b
    Examples:
      memshelf records reindex --memory user.db
    """
    async with opened_records(place) as store:
        before = await store.unindexed()
        with render.progress("Indexing") as progress:
            await store.reindex(progress=progress)
    if as_json:
        render.document({"namespace": place.namespace, "indexed": before})
    else:
        render.line(f"Indexed {render.counted(before, 'record')}")


def _text_of(content: str | None) -> str:
    """The text to store: the argument, or standard input without its last line end."""
    read = typed_or_piped(content, "A record", _MOST_BYTES, too_large="invalid_text", not_text="invalid_text")
    return read if read == content else read.removesuffix("\n").removesuffix("\r")


def _row(record: MemoryRecord) -> list[str]:
    return [times.shown(record.at) if record.at is not None else "", record.id, record.text]


def _fields(record: MemoryRecord) -> list[list[str]]:
    """What is known of a record besides its text, named as in JSON."""
    known = record_json(replace(record, text="", score=None))
    known |= {name: times.shown(moment) for name in ("at", "updated_at") if (moment := getattr(record, name))}
    if origin := known.get("origin"):
        known["origin"] = " ".join([origin.pop("kind", ""), *origin.values()]).lstrip()
    return [[name, "yes" if value is True else value] for name, value in known.items() if value]


def _show(record: MemoryRecord, done: str, *, as_json: bool) -> None:
    if as_json:
        render.document(record_json(record))
    else:
        render.line(f"{done} {record.id}")
