"""Hosted memory stores as file memories. They need the extra `http`.

`MemoryStoreFileStore` is for a memshelf service, with history and search; `PlatformFileStore` for any server that
speaks the Memory Store API. `open_memory_store` asks the server which of them it is.
"""

from memshelf.files.backends.http.connection import ANTHROPIC_HEADERS, ZHIPU_HEADERS
from memshelf.files.backends.http.hosted import MemoryStoreFileStore
from memshelf.files.backends.http.offer import open_memory_store
from memshelf.files.backends.http.platform import PlatformFileStore

__all__ = ["ANTHROPIC_HEADERS", "ZHIPU_HEADERS", "MemoryStoreFileStore", "PlatformFileStore", "open_memory_store"]
