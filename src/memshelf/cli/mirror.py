"""`memshelf stores mirror`: a store as a directory of plain files, and back."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import click

from memshelf.cli import render
from memshelf.cli.command import json_option
from memshelf.cli.hosted import FORMAT, Api, hosted, store_argument
from memshelf.cli.memory import disk_path, origin
from memshelf.cli.stores import stores
from memshelf.errors import MemoryStoreError
from memshelf.mounts.mirror import Mirror, MirrorReport

__all__: list[str] = []


@stores.command()
@json_option
@click.option("--read-only", is_flag=True, help="Write nothing to the store.")
@click.option("--adopt", is_flag=True, help="Take a DIR that has files already; they go to the store.")
@click.option("--delete-many", is_flag=True, help="Delete however many files are gone from the other side.")
@click.option(
    "--watch",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    help="Go on until Ctrl-C, and look at both sides so often.",
)
@store_argument
@click.argument("directory", metavar="DIR")
@hosted
async def mirror(
    api: Api,
    store: str,
    directory: str,
    *,
    read_only: bool,
    adopt: bool,
    delete_many: bool,
    watch: float | None,
    as_json: bool,
) -> None:
    """Keep a store and the directory DIR alike, for editors and agents that only read and write files.

    Each time, what changed on one side goes to the other. A file that was changed on both sides gets the store's text,
    and what was in DIR is kept beside it. Exit code 1 says that some files could not be made alike.

    \b
    Examples:
      memshelf stores mirror Notes ./notes
      memshelf stores mirror Notes ./notes --watch 5
      memshelf stores mirror Notes ./notes --read-only --json
    """
    id = (await api.store(store)).rpartition("/")[2]
    told: list[str] = []
    async with (
        api.files(id) as files,
        Mirror(
            files,
            disk_path(directory),
            name=id,
            access="read" if read_only else "write",
            adopt=adopt,
            format=FORMAT,
            origin=origin(),
        ) as mirrored,
    ):
        while True:
            try:
                report = await mirrored.sync(delete_many=delete_many, patient=watch is not None)
                left, failed = _left(report), False
            except MemoryStoreError as error:
                if watch is None or error.code != "unavailable":
                    raise
                report, left, failed = MirrorReport(), [render.visible_line(str(error))], True
            if as_json and not failed:
                if report.changed or left != told or watch is None:
                    render.document(asdict(report))
            else:
                _show(report)
                if left != told:  # said once
                    for line in left:
                        render.note(line)
            if watch is None:
                if left:
                    raise click.exceptions.Exit(1)
                if not report.changed:
                    render.empty("Both are alike.")
                return
            told = left
            await asyncio.sleep(watch)


def _show(report: MirrorReport) -> None:
    for done, paths in (
        ("fetched", report.pulled),
        ("sent", report.pushed),
        ("removed here", report.removed),
        ("deleted in the store", report.deleted),
    ):
        for path in sorted(paths):
            render.line(f"{done}\t{render.visible_line(path)}")
    for path, copy in sorted(report.conflicts.items()):
        render.line(f"changed on both sides\t{render.visible_line(path)}; yours is {render.visible_line(copy)}")


def _left(report: MirrorReport) -> list[str]:
    """What could not be made alike, a line each."""
    lines = [render.visible_line(f"Not done: {path}: {why}") for path, why in sorted(report.refused.items())]
    if report.held:
        lines.append(
            f"{render.counted(len(report.held), 'file')} of the store are gone here, and were not deleted there: "
            "--delete-many deletes them."
        )
    if report.held_here:
        lines.append(
            f"{render.counted(len(report.held_here), 'file')} are gone from the store, and were not deleted here: "
            "--delete-many deletes them."
        )
    return lines
