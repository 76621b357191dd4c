"""`memshelf threads`: what was said in conversations, kept by `memshelf chat` or by an agent with a session log."""

from __future__ import annotations

from pathlib import Path

import click

from memshelf.cli import render, times
from memshelf.cli.carried import file_argument, force_option, new_file, readable_file
from memshelf.cli.chat import chat, threads_option
from memshelf.cli.command import CommandGroup, confirmed, json_option, limit_option, question, yes_option
from memshelf.cli.memory import disk_path, existing_folder
from memshelf.cli.thread import held, opened
from memshelf.errors import MemoryStoreError
from memshelf.threads.log import SessionLog
from memshelf.threads.rows import Row, decode, encode, texts, tool_calls
from memshelf.threads.transcript import transcript

__all__ = ["threads"]


@click.group(cls=CommandGroup)
def threads() -> None:
    """List, show, continue, branch off, search, export, import and delete conversations.

    A thread is one file of JSON lines, which memshelf chat writes, or an agent with a session log.

    \b
    Examples:
      memshelf threads list
      memshelf threads show work
      memshelf threads search "green tea"
      memshelf threads resume work --memory user=.memory/user --model openai-responses:gpt-5
    """


def _complete_thread(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    del parameter
    try:
        found = SessionLog.list_sessions(disk_path(context.params.get("threads") or ".memshelf/threads"))
    except (MemoryStoreError, OSError, click.ClickException):  # a shell that completes shows no errors
        return []
    return [each.session_id for each in found if each.session_id.startswith(incomplete)]


thread_argument = click.argument("thread", shell_complete=_complete_thread)


@threads.command("list")
@threads_option
@json_option
def list_(threads: str, *, as_json: bool) -> None:
    """List threads, the most recently used first.

    \b
    Examples:
      memshelf threads list
      memshelf threads list --threads .sessions --json
    """
    found = SessionLog.list_sessions(_folder(threads))
    if as_json:
        render.document(
            {
                "threads": [
                    {
                        "thread": each.session_id,
                        "name": each.name,
                        "preview": each.preview,
                        "updated_at": each.updated_at.isoformat(),
                        "size": each.size,
                    }
                    for each in found
                ]
            }
        )
    else:
        rows = [
            (each.session_id, times.shown(each.updated_at), str(each.size), each.name or each.preview) for each in found
        ]
        render.table(
            rows,
            header=("THREAD", "UPDATED", "SIZE", "BEGINS"),
            right=(2,),
            nothing=f"There are no threads in {render.visible_line(threads)}.",
        )


@threads.command()
@threads_option
@json_option
@thread_argument
def show(thread: str, threads: str, *, as_json: bool) -> None:
    """Print a thread as Markdown, or with --json every row of it, also what a compaction left behind.

    \b
    Examples:
      memshelf threads show work
      memshelf threads show work --json
    """
    log = _existing(threads, thread)
    if as_json:
        render.document({"thread": log.session_id, "rows": list(log.rows())})
    else:
        render.show("".join(transcript(log.rows())))


_RESUMED = click.Argument(["thread"], shell_complete=_complete_thread)


@threads.command(params=[_RESUMED, *(each for each in chat.params if each.name not in ("thread", "new"))])
@click.pass_context
def resume(context: click.Context, /, thread: str, **options: object) -> None:
    """Continue a thread: memshelf chat --thread THREAD, for one that exists.

    \b
    Examples:
      memshelf threads resume work --memory user=.memory/user --model openai-responses:gpt-5
      memshelf threads resume work -m user=user.db "Where were we?"
    """
    _existing(str(options["threads"]), thread)
    context.invoke(chat, thread=thread, new=False, **options)


@threads.command()
@threads_option
@json_option
@click.option("--at", metavar="ROW", help="Only up to this row, as `threads search` or `threads show --json` names it.")
@thread_argument
@click.argument("new_thread")
def fork(thread: str, new_thread: str, threads: str, at: str | None, *, as_json: bool) -> None:
    """Begin NEW_THREAD with what was said in THREAD; both then go their own way.

    \b
    Examples:
      memshelf threads fork work work-2
      memshelf threads fork work work-2 --at row_01a229c1a13f76f9827fa9814e7c4ce6
    """
    opened(disk_path(threads), new_thread, "NEW_THREAD")
    forked = _existing(threads, thread).fork(new_thread, at)
    rows = len(list(forked.rows())) - 1
    if as_json:
        render.document({"thread": forked.session_id, "from": thread, "rows": rows})
    else:
        render.line(f"Forked {thread} to {forked.session_id} ({render.counted(rows, 'row')})")


@threads.command()
@threads_option
@json_option
@force_option
@thread_argument
@file_argument
def export(thread: str, file: str, threads: str, *, force: bool, as_json: bool) -> None:
    """Write a thread into a FILE that only you can read, or - for standard output: Markdown if it ends in .md, else
    JSON lines.

    A name that ends in .gz compresses it.

    \b
    Examples:
      memshelf threads export work work.md
      memshelf threads export work work.jsonl.gz
    """
    rows = _existing(threads, thread).rows()
    with new_file(file, force=force) as out:
        if file.endswith((".md", ".md.gz")):
            out.writelines(part.encode(errors="replace") for part in transcript(rows))
        else:
            out.writelines(map(encode, rows))
    if as_json and file != "-":
        render.document({"thread": thread, "file": file})
    elif file != "-":
        render.line(f"Exported {thread} to {render.visible_line(file)}")


@threads.command("import")
@threads_option
@json_option
@file_argument
@click.argument("new_thread", required=False)
def import_(file: str, new_thread: str | None, threads: str, *, as_json: bool) -> None:
    """Bring in a thread that `export` wrote as JSON lines, from FILE or - for standard input: under the name that it
    had, or as NEW_THREAD.

    A thread that exists is left alone. A damaged file is refused as a whole.

    \b
    Examples:
      memshelf threads import work.jsonl.gz
      memshelf threads import work.jsonl work-2
    """
    with readable_file(file) as read, read() as lines:
        rows = [_imported(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
        if not rows:
            raise MemoryStoreError("invalid_file", "There are no rows in it. Nothing was imported.")
    name = new_thread if new_thread is not None else rows[-1].get("session_id")
    if not isinstance(name, str):
        raise click.UsageError("The rows do not say which thread they are of: give a NEW_THREAD.")
    opened(disk_path(threads), name, "NEW_THREAD").create(rows)
    if as_json:
        render.document({"thread": name, "rows": len(rows)})
    else:
        render.line(f"Imported {name} ({render.counted(len(rows), 'row')})")


def _imported(number: int, line: bytes) -> Row:
    if (row := decode(line)) is None:
        raise MemoryStoreError(
            "invalid_file", f"Line {number} is no row of a thread, as `export` writes JSON lines. Nothing was imported."
        )
    return row


@threads.command()
@threads_option
@json_option
@click.option("--thread", metavar="THREAD", help="Search only this thread.", shell_complete=_complete_thread)
@limit_option(20)
@click.argument("query", type=question)
def search(query: str, threads: str, thread: str | None, limit: int, *, as_json: bool) -> None:
    """Find what was said, in one thread or in all; the best of each thread first. Finding nothing is not a failure.

    \b
    Examples:
      memshelf threads search "green tea"
      memshelf threads search 绿茶 --thread work --json
    """
    directory = _folder(threads)
    if thread is not None:
        logs = [_existing(threads, thread)]
    else:
        logs = [SessionLog(each.session_id, directory) for each in SessionLog.list_sessions(directory)]
    found = [(log.session_id, row) for log in logs for row in log.search(query, limit)][:limit]
    if as_json:
        render.document({"query": query, "rows": [row | {"session_id": name} for name, row in found]})
    else:
        rows = [(name, _time(row), str(row.get("id")), row["type"], _line(row)) for name, row in found]
        render.table(rows, header=("THREAD", "TIME", "ROW", "BY", "TEXT"), nothing="Nothing was found.")


@threads.command()
@threads_option
@json_option
@yes_option
@thread_argument
def rm(thread: str, threads: str, *, yes: bool, as_json: bool) -> None:
    """Delete a thread for good. Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf threads rm work
      memshelf threads rm work --yes
    """
    log = _existing(threads, thread)
    if not yes:
        confirmed(f"Delete {log.session_id} for good?", as_json=as_json)
    with held(log):
        log.delete()
    if as_json:
        render.document({"thread": log.session_id, "deleted": True})
    else:
        render.line(f"Deleted {log.session_id}")


def _folder(threads: str) -> Path:
    return existing_folder(
        threads,
        "folder of threads",
        "Check --threads: `memshelf chat` keeps its threads in .memshelf/threads, an agent its sessions in .sessions.",
    )


def _existing(threads: str, thread: str) -> SessionLog:
    log = opened(disk_path(threads), thread, "THREAD")
    _folder(threads)
    if not log.exists():
        raise MemoryStoreError("not_found", f"There is no thread {log.session_id} in {threads}.")
    return log


def _time(row: Row) -> str:
    try:
        return times.shown(str(row.get("timestamp")))
    except ValueError:  # another program wrote the row
        return ""


def _line(row: Row) -> str:
    called = [f"{call['name']} {' '.join(texts(call.get('args')))}" for call in tool_calls(row)]
    return " ".join(" ".join([*texts(row.get("content")), *called]).split())
