"""Run memshelf's contracts on a store of your own.

Needs pytest and Hypothesis (`pip install "memshelf[testing]"`). Subclass a suite and say how to open the store::

    class TestMyStore(FileStoreContract):
        @asynccontextmanager
        async def open(self, place, format=None):
            yield MyStore(place / "data", format=format)
"""

try:
    import hypothesis as _hypothesis  # noqa: F401  # only to name the extra when it is missing
    import pytest as _pytest  # noqa: F401
except ModuleNotFoundError as error:
    if error.name not in ("hypothesis", "pytest"):
        raise
    raise ModuleNotFoundError(
        'The contract suites need the extra "testing", which is not installed: pip install "memshelf[testing]"',
        name=error.name,
    ) from error

from memshelf.testing.files import FileStoreContract
from memshelf.testing.harness import StoreContract, refused, scenario
from memshelf.testing.history import HistoryFileStoreContract
from memshelf.testing.machine import FileStoreMachine
from memshelf.testing.recall import RecallRecordStoreContract
from memshelf.testing.records import RecordStoreContract
from memshelf.testing.search import SearchableFileStoreContract

__all__ = [
    "FileStoreContract",
    "FileStoreMachine",
    "HistoryFileStoreContract",
    "RecallRecordStoreContract",
    "RecordStoreContract",
    "SearchableFileStoreContract",
    "StoreContract",
    "refused",
    "scenario",
]
