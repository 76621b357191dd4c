"""A private file of lines that several processes append to."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property

from memshelf.errors import MemoryStoreError
from memshelf.storage.private import close_quietly, make_private, private_directory, settle, sync_directory
from memshelf.storage.staged import staged

__all__ = ["Journal", "Lines"]

_APPEND = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe in the file's place must not hold us up
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FIRST_BLOCK, _LARGEST_BLOCK = 1 << 16, 1 << 22


class Lines:
    """The whole lines that a file had at one instant. Only valid while it is open. `unavailable`."""

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.size = size

    def forwards(self) -> Iterator[bytes]:
        """The lines without their ends, from the first. A last line without an end comes too."""
        rest, at = b"", 0
        while at < self.size:
            block = self._read(min(_LARGEST_BLOCK, self.size - at), at)
            if not block:
                break
            at += len(block)
            *whole, rest = (rest + block).split(b"\n")
            yield from whole
        if rest:
            yield rest

    def backwards(self) -> Iterator[bytes]:
        """The lines without their ends, from the last. Reading stops where the caller stops."""
        rest, at, length = b"", self.size, _FIRST_BLOCK
        first = True
        while at:
            length = min(length, at)
            at -= length
            rest, *whole = (self._read(length, at) + rest).split(b"\n")
            if first and whole:
                whole = whole if whole[-1] else whole[:-1]  # what is behind the last line's end is no line
                first = False
            yield from reversed(whole)
            length = min(length * 2, _LARGEST_BLOCK)
        if rest:
            yield rest

    def count(self) -> int:
        """How many lines there are, without looking at what is in them."""
        starts = range(0, self.size, _LARGEST_BLOCK)
        ends = (self._read(min(_LARGEST_BLOCK, self.size - at), at).count(b"\n") for at in starts)
        return sum(ends) + self.torn

    @cached_property
    def torn(self) -> bool:
        """Whether the last line has no end: whoever wrote it died, or a person edited the file."""
        return self.size > 0 and self._read(1, self.size - 1) != b"\n"

    def _read(self, length: int, at: int) -> bytes:
        """All of it, unless the file ends before."""
        with _refusals(self._path):
            data = os.pread(self._descriptor, length, at)
            while len(data) < length and (more := os.pread(self._descriptor, length - len(data), at + len(data))):
                data += more
        return data


class Journal:
    """One such file, at `path`. Nothing stays open between calls.

    With `durable`, what was changed survives a loss of power. A system that refuses is `unavailable`; a change that is
    made, and that it does not confirm, is `write_unconfirmed`. `below` is a directory above the file, from which no
    symbolic link is followed on the way to it: one is `unavailable`.
    """

    def __init__(self, path: str, *, durable: bool, below: str | None = None) -> None:
        self.path = path
        self._durable = durable
        self._below = below
        self._name = path if below is None else os.path.basename(path)

    @contextmanager
    def reading(self) -> Iterator[Lines]:
        """The lines that are there now; none if there is no file. Lines being written at this instant are not seen."""
        try:
            with _refusals(self.path), self._directory() as at:
                descriptor = os.open(self._name, _READ, dir_fd=at)
        except FileNotFoundError:
            yield Lines(self.path, -1, 0)
            return
        try:
            with _refusals(self.path):
                fcntl.flock(descriptor, fcntl.LOCK_SH)
                size = os.fstat(descriptor).st_size
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            yield Lines(self.path, descriptor, size)
        finally:
            close_quietly(descriptor)

    def exists(self) -> bool:
        """Whether there is a file, or anything else in its place."""
        with _refusals(self.path):
            try:
                os.lstat(self.path)
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def names(self) -> list[str]:
        """The names of the regular files in its directory, in no order; none if there is no directory."""
        try:
            with _refusals(self.path), self._directory() as at:
                where = os.path.dirname(self.path) if at is None else at
                with os.scandir(where) as entries:
                    return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return []

    def append(self, make: Callable[[Lines], bytes]) -> None:
        """Append the lines that `make` makes of those that are there, as one: nobody else writes in between.

        All of them are written or none, except by a crash, which may leave the first and part of one. A line that was
        left without an end gets one first, so that only it is lost. A file that is missing is made, and its directory.
        """
        try:
            while True:
                with self._directory(make=True) as at:
                    if (locked := self._locked(at)) is None:
                        continue  # the directory was removed while we waited
                    descriptor, created = locked
                    with self._released(descriptor):
                        lines = Lines(self.path, descriptor, os.fstat(descriptor).st_size)
                        data = make(lines)
                        if data:
                            self._write(descriptor, b"\n" + data if lines.torn else data, lines.size)
                            self._sync(descriptor, created=created)
                    return
        except OSError as error:
            raise _refusal(self.path, error) from error

    def create(self, lines: Iterable[bytes], *, make: bool = False) -> None:
        """Make the file with these lines, each with its end; `FileExistsError` if there is one. It appears whole.

        With `make`, a directory that is missing is made as for `append`.
        """
        directory, made = os.path.dirname(self.path), False
        try:
            if make:
                private_directory(directory, durable=self._durable)
            with staged(directory) as (file, path):
                file.writelines(lines)
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
                os.link(path, self.path)  # unlike a rename, it never replaces a file
                made = True
        except OSError as error:
            if made:
                raise _unconfirmed(self.path, error) from error
            if isinstance(error, FileExistsError):
                raise
            raise _refusal(self.path, error) from error
        self._confirm()

    def remove(self) -> bool:
        """Remove the file; whether there was one."""
        with _refusals(self.path):
            try:
                os.unlink(self.path)
            except FileNotFoundError:
                return False
            self._confirm()
            return True

    @contextmanager
    def _directory(self, *, make: bool = False, sync: bool = False) -> Iterator[int | None]:
        """The open directory of the file, which every step from `below` leads to; `None` where its path is enough."""
        if self._below is None:
            yield None
            return
        if make:
            make_private(self._below)
        if sync:
            sync_directory(os.path.dirname(self._below))
        at = os.open(self._below, _DIRECTORY)
        try:
            for name in os.path.relpath(os.path.dirname(self.path), self._below).split(os.sep):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=at)
                if sync:
                    os.fsync(at)
                inside = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                above, at = at, inside
                close_quietly(above)
            yield at
        finally:
            close_quietly(at)

    def _sync(self, descriptor: int, *, created: bool) -> None:
        if not self._durable:
            return
        with _lasting(self.path):
            os.fsync(descriptor)
            if created:
                with self._directory(sync=True) as at:
                    if at is None:
                        settle(self.path)
                    else:
                        os.fsync(at)

    def _confirm(self) -> None:
        """Wait until the file's entry in its directory is on the disk, or is gone from there."""
        if self._durable:
            with _lasting(self.path):
                settle(self.path)

    def _write(self, descriptor: int, data: bytes, size: int) -> None:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError as error:
            try:
                if os.fstat(descriptor).st_size > size:
                    os.ftruncate(descriptor, size)  # the disk is full: take back the part that had room
            except OSError:
                raise _unconfirmed(self.path, error) from error
            raise

    @contextmanager
    def _released(self, descriptor: int) -> Iterator[None]:
        """Release the file afterwards. A system that then refuses has perhaps not kept what was written."""
        try:
            yield
        except BaseException:
            with suppress(OSError):
                _release(descriptor)
            raise
        with _lasting(self.path):
            _release(descriptor)

    def _locked(self, at: int | None) -> tuple[int, bool] | None:
        while True:
            try:
                descriptor, created = self._open(at)
            except FileNotFoundError:
                if at is None:
                    raise
                return None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self._is_at(descriptor, at):
                    return descriptor, created
            except BaseException:
                with suppress(OSError):
                    _release(descriptor)
                raise
            _release(descriptor)  # the file was removed while we waited

    def _is_at(self, descriptor: int, at: int | None) -> bool:
        try:
            there = os.stat(self._name, dir_fd=at, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(os.fstat(descriptor), there)

    def _open(self, at: int | None) -> tuple[int, bool]:
        while True:
            try:
                descriptor = os.open(self._name, _APPEND, dir_fd=at)
            except FileNotFoundError:
                if at is None:
                    private_directory(os.path.dirname(self.path), durable=self._durable)
            else:
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return descriptor, False
                os.close(descriptor)  # what is written to a pipe is gone
                raise OSError(errno.EINVAL, "Not a regular file")
            with suppress(FileExistsError):
                return os.open(self._name, _APPEND | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=at), True


def _release(descriptor: int) -> None:
    with suppress(OSError):
        # Closing is not enough if another thread forked meanwhile: the child has a copy of the descriptor.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


@contextmanager
def _refusals(path: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        raise _refusal(path, error) from error


@contextmanager
def _lasting(path: str) -> Iterator[None]:
    """Within it, a change that is made already is synced: there is no way back."""
    try:
        yield
    except OSError as error:
        raise _unconfirmed(path, error) from error


def _unconfirmed(path: str, error: OSError) -> MemoryStoreError:
    return MemoryStoreError(
        "write_unconfirmed", f"{path}: changed, but perhaps not whole or not for good. {error.strerror}."
    )


def _refusal(path: str, error: OSError) -> MemoryStoreError:
    return MemoryStoreError("unavailable", f"{path}: {error.strerror or error}.")
