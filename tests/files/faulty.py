"""A proxy on a real socket that does to replies what networks do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2

AFTER = ("lost", "half", "500", "502", "504", "slow", "garbage", "no object", "other fields", "oversize", "redirect",
         "compressed")  # fmt: skip
"""Faults of the reply to a request that the server has done."""

BEFORE = ("dropped", "503 before")
"""Faults on the way to the server, of which the client cannot tell that nothing was done."""

_PAGES = {
    "500": b"HTTP/1.1 500 Oh\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
    "502": b"HTTP/1.1 502 Bad\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>",
    "504": b"HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    "503 before": b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    "garbage": b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n\xff\x00{[",
    "no object": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]",
    "other fields": b'HTTP/1.1 200 OK\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{"id": [1]}',
    "redirect": b"HTTP/1.1 307 Go\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    "compressed": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
}


@dataclass
class Proxy:
    """`fault` is done to the requests for which `when` holds; `seen` are the methods and paths of all.

    What is `slow` lets time pass by `pass_time`, and never replies.
    """

    client: httpx2.AsyncClient
    upstream: str
    port: int = 0
    fault: str | None = None
    when: Callable[[str, str], bool] = lambda method, path: method != "GET"
    seen: list[tuple[str, str]] = field(default_factory=list)
    meanwhile: Callable[[], object] | None = None
    pass_time: Callable[[float], None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def changes(self) -> list[str]:
        return [path for method, path in self.seen if method != "GET"]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.pop("content-length", 0)))
            self.seen.append((method, path))
            fault = self.fault if self.when(method, path) else None
            writer.write(await self._reply(fault, method, path, headers, body))
            await writer.drain()
            while fault == "oversize":
                writer.write(b" " * 65_536)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _reply(self, fault: str | None, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
        if fault not in BEFORE:
            answer = await self.client.request(method, self.upstream + path, headers=headers, content=body)
            head = (
                f"HTTP/1.1 {answer.status_code} X\r\ncontent-length: {len(answer.content)}\r\nconnection: close\r\n\r\n"
            )
            reply = head.encode() + answer.content
        if fault is not None and self.meanwhile is not None:
            await self.meanwhile()
        if fault is None:
            return reply
        if fault in ("lost", "dropped"):
            return b""
        if fault == "half":
            return reply[:-5]
        if fault == "slow":
            self.pass_time(60)
            await asyncio.Event().wait()
        if fault == "oversize":
            return b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{"
        return _PAGES[fault]


@asynccontextmanager
async def proxied(client: httpx2.AsyncClient, upstream: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(client, upstream)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(proxy.serve(reader, writer))
        tasks.add(task)
        await asyncio.wait([task])

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
