"""A file memory in a directory of plain files."""

from memshelf.files.backends.directory.store import DirectoryFileStore

__all__ = ["DirectoryFileStore"]
