"""Which of the stores a server is."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import httpx2

from memshelf.arguments import checked_id
from memshelf.errors import MemoryStoreError
from memshelf.files.backends.http.connection import ANTHROPIC_HEADERS, Connection, RefusedError
from memshelf.files.backends.http.hosted import MemoryStoreFileStore
from memshelf.files.backends.http.platform import PlatformFileStore
from memshelf.files.format import FileFormat

__all__ = ["open_memory_store"]


async def open_memory_store(
    base_url: str,
    api_key: str,
    store: str,
    *,
    headers: Mapping[str, str] = ANTHROPIC_HEADERS,
    client: httpx2.AsyncClient | None = None,
    format: FileFormat | None = None,
    timeout: float = 30.0,  # noqa: ASYNC109  # it is that of each request of the store
    max_answer_bytes: int = 67_108_864,
) -> MemoryStoreFileStore | PlatformFileStore:
    """Ask the server, with up to two requests, and answer with the store that makes the most of it.

    `unknown_memory` when it has no such store; `forbidden`, `unavailable`.
    """
    named = quote(checked_id("store", store), safe="", errors="replace")
    connection = Connection(
        base_url, api_key, headers=headers, client=client, timeout=timeout, max_answer_bytes=max_answer_bytes
    )
    kind: type[MemoryStoreFileStore | PlatformFileStore] = MemoryStoreFileStore
    try:
        await connection.ask(f"/v1/memory_stores/{named}", lambda answer: answer)
        try:
            await connection.ask(f"/v1/memshelf/memory_stores/{named}/files/changes", lambda answer: answer)
        except RefusedError:  # it has nothing there
            kind = PlatformFileStore
    except RefusedError as refused:
        if refused.code == "not_found":
            raise MemoryStoreError("unknown_memory", f"The server has no memory store {store}.") from None
        raise refused.plainly() from None
    finally:
        await connection.aclose()
    return kind(
        base_url,
        api_key,
        store,
        headers=headers,
        client=client,
        format=format,
        timeout=timeout,
        max_answer_bytes=max_answer_bytes,
    )
