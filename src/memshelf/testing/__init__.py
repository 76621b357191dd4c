"""Run memshelf's contracts on a store of your own.

Needs pytest and Hypothesis (`pip install "memshelf[testing]"`). Subclass a suite and say how to open the store::

    class TestMyStore(FileStoreContract):
        @asynccontextmanager
        async def open(self, place, format=None):
            yield MyStore(place / "data", format=format)
"""

from memshelf.testing.files import FileStoreContract, SearchableFileStoreContract
from memshelf.testing.harness import StoreContract, refused, scenario
from memshelf.testing.history import HistoryFileStoreContract
from memshelf.testing.machine import FileStoreMachine

__all__ = [
    "FileStoreContract",
    "FileStoreMachine",
    "HistoryFileStoreContract",
    "SearchableFileStoreContract",
    "StoreContract",
    "refused",
    "scenario",
]
