"""`memshelf search`: the files of a memory, by what they mean."""

from __future__ import annotations

from dataclasses import asdict

import click

from memshelf.cli import render
from memshelf.cli.command import TextCommand, asynchronous, json_option, limit_option, memory_option, question
from memshelf.cli.memory import Place, locate, opened
from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory.names import CONTROL
from memshelf.files.format import validate_directory
from memshelf.meaning.kept import DatabaseVectors, FileVectors, KeptVectors
from memshelf.storage.sqlite_engine import SqliteEngine

__all__ = ["search"]

_EXCERPT_CHARS = 200


@click.command(cls=TextCommand)
@memory_option
@json_option
@limit_option(10)
@click.option("--under", metavar="PATH", default="", help="Only the files below this directory of the memory.")
@click.option("--no-cache", is_flag=True, help="Keep nothing for the next search, and use nothing that was kept.")
@click.argument("query", type=question)
@asynchronous
async def search(memory: str, query: str, *, limit: int, under: str, no_cache: bool, as_json: bool) -> None:
    """Find the files of a memory that are closest to QUERY in meaning, closest first, each with its best passage.

    QUERY and files may be in English or Chinese, and need share no word; for exact words there is `files grep`. It
    needs the extra "embed", and goes by words without it. What was read once is kept, as vectors, for the next search:
    in the SQLite file itself, or in .memshelf/vectors of the directory. There is always a closest file: the score, from
    0 to 1, says how close.

    \b
    Examples:
      memshelf search "what does she drink in the morning?" --memory .memory/user
      memshelf search 怎样部署到生产环境 --under runbooks/ --memory team.db#notes --json
    """
    from memshelf.meaning.files import FileMeaning  # it loads NumPy, which other commands do not need

    place = locate(memory)
    directory = validate_directory(under if not under or under.endswith("/") else f"{under}/")
    async with opened(memory) as store:
        kept = None if no_cache else _kept(place)
        found = FileMeaning(store, kept)
        try:
            with render.progress("Reading") as progress:
                hits = await found.search(query, limit=limit, directory=directory, progress=progress)
            if directory and not hits and not any(each.path.startswith(directory) for each in await store.list()):
                raise MemoryStoreError("not_found", f"{under} is no directory of this memory.")
        finally:
            await found.aclose()
            if isinstance(kept, DatabaseVectors):
                await kept.aclose()
    if as_json:
        render.document({"memory": memory, "query": query, "hits": [asdict(hit) for hit in hits]})
        return
    rows = [[f"{hit.score:.2f}", f"{hit.path}:{hit.line}", hit.text[:_EXCERPT_CHARS]] for hit in hits]
    render.table(rows, header=("SCORE", "FILE", "TEXT"), right=(0,), nothing="Nothing was found.")


def _kept(place: Place) -> KeptVectors:
    if place.kind == "directory":
        return FileVectors(place.path / CONTROL / "vectors")
    return DatabaseVectors(SqliteEngine(place.path), place.memory)
