"""Files that commands write whole or not at all, and files that they read more than once."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, cast

import click

from memshelf.cli import render
from memshelf.cli.command import disk_paths
from memshelf.cli.memory import disk_path
from memshelf.errors import MemoryStoreError
from memshelf.presence import stands
from memshelf.storage.private import sync_directory
from memshelf.storage.staged import staged

__all__ = ["file_argument", "force_option", "new_file", "readable_file"]

_GZIP = b"\x1f\x8b"

force_option = click.option("--force", is_flag=True, help="Replace FILE if it exists.")
file_argument = click.argument("file", shell_complete=disk_paths)


@contextmanager
def new_file(file: str, *, force: bool) -> Iterator[IO[bytes]]:
    """A file that is there only when it is complete; standard output for -. A name that ends in .gz compresses it."""
    if file == "-":
        yield sys.stdout.buffer
        return
    place = disk_path(file)
    if stands(place) and not force:
        raise click.UsageError(f"{file} exists; say --force to replace it.")
    in_place = False
    try:
        with ExitStack() as writing:
            with _called(file):
                raw, path = writing.enter_context(staged(str(place.parent)))
            if place.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
            with _called(file):
                Path(path).replace(place)
            in_place = True
        sync_directory(str(place.parent))
    except OSError as error:
        if not in_place:
            raise
        raise MemoryStoreError(
            "write_unconfirmed", f"{file} is written, but may not survive a power cut: {error.strerror}."
        ) from error


@contextmanager
def _called(file: str) -> Iterator[None]:
    """Let a failure name the file as the user did: nobody knows the one beside it that is to become it."""
    try:
        yield
    except OSError as error:
        error.filename = file
        raise


@contextmanager
def _naming(file: str) -> Iterator[None]:
    try:
        yield
    except MemoryStoreError as error:
        if error.code == "invalid_file":
            error.add_note(f"The file is {render.visible_line(file) if file != '-' else 'standard input'}.")
        raise


@contextmanager
def readable_file(file: str) -> Iterator[Any]:
    """How to read a file, or standard input for -, from its beginning, as often as needed. It may be compressed. The
    refusal of what is in it, `invalid_file`, says which one it is."""
    with _naming(file), tempfile.TemporaryDirectory(prefix="memshelf-") as spool:
        place = disk_path(file)
        # Standard input and pipes, such as those of a shell's <(...), can be read only once.
        if file == "-" or place.is_fifo():
            source = nullcontext(sys.stdin.buffer) if file == "-" else place.open("rb")
            place = Path(spool, "input")
            with source as once, place.open("wb") as out:
                shutil.copyfileobj(once, out)

        @contextmanager
        def read() -> Iterator[IO[bytes]]:
            with place.open("rb") as raw:
                packed = raw.peek(2)[:2] == _GZIP
                if not packed:
                    yield raw
                    return
                try:
                    with gzip.GzipFile(fileobj=raw) as unpacked:
                        yield cast("IO[bytes]", unpacked)
                except (EOFError, zlib.error, gzip.BadGzipFile):
                    raise MemoryStoreError("invalid_file", "The file is compressed, and damaged.") from None

        yield read
