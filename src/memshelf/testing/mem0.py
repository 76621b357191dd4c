"""A mem0 server for tests, of either kind, with the faults that a real one may have.

It speaks the part of mem0's REST API that memshelf uses, and keeps its records in memory. Use it through `client()`, as
an ASGI application, or on the loopback interface with `served()`. Needs the extra `http`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from memshelf.net.egress import httpx2

__all__ = ["FakeMem0", "Fault", "Mem0Flavour"]

Mem0Flavour: TypeAlias = Literal["mem0_oss", "mem0_platform"]
Fault: TypeAlias = Literal[
    "dropped", "lost", "failed", "failed_after", "malformed", "oversize", "redirected", "refused", "hanging"
]
"""What happens to a request instead of what should.

Not carried out: `dropped` (the connection ends), `failed` (500), `redirected` (307), `refused` (403), `hanging` (no
answer ever). Carried out: `lost` (the connection ends), `failed_after` (500), `malformed` (no JSON), `oversize` (9 MiB
of JSON).
"""

_NOT_CARRIED_OUT = ("dropped", "failed", "redirected", "refused", "hanging")
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_WORDS = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]")

_Scope: TypeAlias = MutableMapping[str, Any]  # ASGI's own type
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(slots=True)
class _Kept:
    id: str
    user_id: str
    text: str
    created_at: datetime
    updated_at: datetime

    def shown(self, score: float | None = None) -> dict[str, object]:
        return {
            "id": self.id,
            "memory": self.text,
            "user_id": self.user_id,
            "metadata": None,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        } | ({"score": score} if score is not None else {})


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)


@dataclass(slots=True)
class FakeMem0:
    """`api_key`, if set, is asked of every request. `leaky` shows the records of all users, whoever asks; `rewriting`
    stores another text than the one given, as mem0 does when it infers; `nameless` leaves users out of its answers to
    searches and listings; `newest_first` turns the platform's listing around. `requests` are those that came."""

    flavour: Mem0Flavour
    api_key: str | None = None
    leaky: bool = False
    rewriting: bool = False
    nameless: bool = False
    newest_first: bool = False
    purges_after: int = 2
    """How many requests later the platform's records are really gone after a purge."""
    adds_after: int = 0
    """How many requests later the platform has added a record; until then it tells of an event. 0: at once."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _faults: list[tuple[Fault, str, int]] = field(default_factory=list)
    _purging: list[tuple[int, str]] = field(default_factory=list)
    _adding: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    _moments: int = 0

    def fail(self, fault: Fault, method: str = "", *, after: int = 0) -> None:
        """Let the next request of that method, or the next of all, meet a fault; `after` so many that go well."""
        self._faults.append((fault, method, after))

    def texts(self, user_id: str) -> list[str]:
        return [kept.text for kept in self._kept.values() if kept.user_id == user_id]

    def put(self, user_id: str, text: str) -> str:
        """Keep a record, as another client would; its id."""
        now = self._now()
        kept = _Kept(str(uuid.uuid4()), user_id, text, now, now)
        self._kept[kept.id] = kept
        return kept.id

    def remove(self, record_id: str) -> None:
        del self._kept[record_id]

    def client(self) -> httpx2.AsyncClient:
        """A client whose requests all come here, whatever their host."""
        return httpx2.AsyncClient(transport=_Transport(self))

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """The server on a port of the loopback interface; its address."""
        connections: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._connected(reader, writer))
            connections.add(task)
            task.add_done_callback(connections.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in connections:
                task.cancel()
            await asyncio.gather(*connections, return_exceptions=True)

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """As an ASGI application. What a connection cannot lose here is cut short."""
        if scope["type"] != "http":
            raise NotImplementedError(f"A mem0 server knows HTTP only, not {scope['type']}.")
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        target = f"{scope.get('raw_path', scope['path'].encode()).decode()}?{scope['query_string'].decode()}"
        reply = await self._answer(scope["method"], target, headers, body) or _Reply(
            200, b"", (("content-length", "1"),)
        )
        await send(
            {
                "type": "http.response.start",
                "status": reply.status,
                "headers": [(name.encode(), value.encode()) for name, value in reply.headers],
            }
        )
        await send({"type": "http.response.body", "body": reply.body})

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, target, _ = first.split(" ")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            reply = await self._answer(method, target, headers, body)
            if reply is not None:
                sent = (*reply.headers, ("content-length", str(len(reply.body))), ("connection", "close"))
                head = "\r\n".join([f"HTTP/1.1 {reply.status} .", *(f"{name}: {value}" for name, value in sent)])
                writer.write(f"{head}\r\n\r\n".encode() + reply.body)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()

    async def _answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> _Reply | None:
        """`None` for a connection that ends without an answer."""
        self.requests.append((method, target.rstrip("?")))
        self._purge_what_is_due()
        fault = self._next_fault(method)
        if fault == "hanging":
            await asyncio.Event().wait()
        reply = _Reply(0, b"")
        if fault not in _NOT_CARRIED_OUT:
            status, value = self._carried_out(method, target, headers, body)
            reply = _Reply(status, json.dumps(value).encode())
        match fault:
            case "dropped" | "lost":
                return None
            case "failed" | "failed_after":
                return _Reply(500, b'{"detail": "Internal error"}')
            case "malformed":
                return _Reply(reply.status, b'{"results": [')
            case "oversize":
                return _Reply(reply.status, reply.body + b" " * (9 * 1024 * 1024))
            case "redirected":
                return _Reply(307, b"", (("location", f"/elsewhere{target}"),))
            case "refused":
                return _Reply(403, b'{"detail": "Forbidden"}')
            case _:
                return reply

    def _next_fault(self, method: str) -> Fault | None:
        for at, (fault, of, after) in enumerate(self._faults):
            if of in ("", method):
                self._faults[at : at + 1] = [(fault, of, after - 1)] if after else []
                return fault if after == 0 else None
        return None

    def _carried_out(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, object]:
        expected = self.api_key if self.flavour == "mem0_oss" else f"Token {self.api_key}"
        given = headers.get("x-api-key" if self.flavour == "mem0_oss" else "authorization")
        if self.api_key is not None and given != expected:
            return 401, {"detail": "Invalid API key."}
        parts = urlsplit(target)
        query, sent = dict(parse_qsl(parts.query)), json.loads(body) if body else {}
        path = parts.path
        if self.flavour == "mem0_platform":
            if not path.endswith("/"):
                return 404, {"detail": "Not found."}
            path = path.removesuffix("/")
        names = {
            ("POST", "/memories"): "add",
            ("POST", "/search"): "search",
            ("GET", "/memories"): "list",
            ("DELETE", "/memories"): "purge",
        } if self.flavour == "mem0_oss" else {
            ("POST", "/v3/memories/add"): "add",
            ("POST", "/v3/memories/search"): "search",
            ("POST", "/v3/memories"): "list",
            ("DELETE", "/v1/memories"): "purge",
        }  # fmt: skip
        match names.get((method, path)):
            case "add":
                return self._add(sent)
            case "search":
                return self._search(sent)
            case "list":
                return self._list(query, sent)
            case "purge":
                return self._purge(query)
        if self.flavour == "mem0_platform" and path.startswith("/v1/event/"):
            return self._event(path.removeprefix("/v1/event/"))
        root = "/memories/" if self.flavour == "mem0_oss" else "/v1/memories/"
        record_id = unquote(path.removeprefix(root))
        if not path.startswith(root) or "/" in record_id:
            return 404, {"detail": "Not Found"}
        return self._one(method, record_id, sent)

    def _add(self, sent: dict[str, Any]) -> tuple[int, object]:
        if self.flavour == "mem0_platform" and self.adds_after:
            event_id = str(uuid.uuid4())
            self._adding[event_id] = (len(self.requests) + self.adds_after, sent)
            return 200, {"message": "Queued.", "status": "PENDING", "event_id": event_id}
        return 200, {"results": self._added(sent)}

    def _event(self, event_id: str) -> tuple[int, object]:
        if event_id not in self._adding:
            return 404, {"detail": "Event not found."}
        due, sent = self._adding[event_id]
        if len(self.requests) < due:
            return 200, {"id": event_id, "event_type": "ADD", "status": "RUNNING", "results": []}
        del self._adding[event_id]
        return 200, {"id": event_id, "event_type": "ADD", "status": "SUCCEEDED", "results": self._added(sent)}

    def _added(self, sent: dict[str, Any]) -> list[dict[str, object]]:
        results = []
        for message in sent["messages"]:
            text = message["content"] if not self.rewriting else f"User said: {message['content']}"
            record_id = self.put(sent["user_id"], text)
            results.append({"id": record_id, "memory": text, "event": "ADD", "role": message["role"]})
        return results

    def _search(self, sent: Mapping[str, Any]) -> tuple[int, object]:
        asked = set(_WORDS.findall(sent["query"].lower()))
        scored = []
        for kept in self._of(sent["filters"]["user_id"]):
            words = set(_WORDS.findall(kept.text.lower()))
            if common := len(asked & words):
                scored.append((common / len(asked), kept))
        scored.sort(key=lambda each: -each[0])
        return 200, {"results": [self._public(kept.shown(score)) for score, kept in scored[: sent["top_k"]]]}

    def _list(self, query: Mapping[str, str], sent: Mapping[str, Any]) -> tuple[int, object]:
        if self.flavour == "mem0_oss":
            if not 1 <= int(query.get("top_k", "100")) <= 1_000:
                return 422, {"detail": "top_k is from 1 to 1000."}
            # As vector stores do: in the order of random ids.
            listed = sorted(self._of(query["user_id"]), key=lambda kept: kept.id)[: int(query.get("top_k", "100"))]
            return 200, {"results": [self._public(kept.shown()) for kept in listed]}
        page, size = int(query.get("page", "1")), int(query.get("page_size", "100"))
        if not 1 <= size <= 200:
            return 400, {"detail": "page_size is from 1 to 200."}
        found = self._of(sent["filters"]["user_id"])
        if self.newest_first:
            found.reverse()
        if page > 1 and (page - 1) * size >= len(found):
            return 404, {"detail": "Invalid page."}
        more = page * size < len(found)
        return 200, {
            "count": len(found),
            "next": f"https://api.mem0.ai/v3/memories/?page={page + 1}&page_size={size}" if more else None,
            "previous": None,
            "results": [self._public(kept.shown()) for kept in found[(page - 1) * size : page * size]],
        }

    def _purge(self, query: Mapping[str, str]) -> tuple[int, object]:
        if not query.get("user_id"):
            return 400, {"detail": "At least one identifier is required."}
        due = len(self.requests) + (self.purges_after if self.flavour == "mem0_platform" else 0)
        self._purging.append((due, query["user_id"]))
        self._purge_what_is_due()
        return 200, {"message": "Memories deleted successfully!"}

    def _purge_what_is_due(self) -> None:
        for due, user_id in list(self._purging):
            if len(self.requests) >= due:
                self._purging.remove((due, user_id))
                for kept in [each for each in self._kept.values() if each.user_id == user_id]:
                    del self._kept[kept.id]

    def _one(self, method: str, record_id: str, sent: Mapping[str, Any]) -> tuple[int, object]:
        kept = self._kept.get(record_id)
        if kept is None:
            if self.flavour == "mem0_oss":
                return (200, None) if method == "GET" else (404, {"detail": "Memory not found."})
            return (404, {"detail": "Memory not found!"}) if _is_uuid(record_id) else (400, {"detail": "Invalid id."})
        if method == "PUT":
            kept.text, kept.updated_at = sent["text"], self._now()
            return 200, {"message": "Memory updated successfully!"}
        if method == "DELETE":
            del self._kept[record_id]
            return 200, {"message": "Memory deleted successfully!"}
        return 200, kept.shown()

    def _of(self, user_id: str) -> list[_Kept]:
        everybody = self.leaky or user_id == "*"
        return [kept for kept in self._kept.values() if everybody or kept.user_id == user_id]

    def _public(self, shown: dict[str, object]) -> dict[str, object]:
        return {name: value for name, value in shown.items() if name != "user_id"} if self.nameless else shown

    def _now(self) -> datetime:
        self._moments += 1
        return _BEGINNING + timedelta(milliseconds=self._moments)


class _Transport(httpx2.AsyncBaseTransport):
    def __init__(self, fake: FakeMem0) -> None:
        self._fake = fake

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        target = request.url.raw_path.decode()
        reply = await self._fake._answer(request.method, target, dict(request.headers), body)  # noqa: SLF001  # its own
        if reply is None:
            raise httpx2.ReadError("The connection ended.", request=request)
        return httpx2.Response(reply.status, headers=reply.headers, stream=httpx2.ByteStream(reply.body))


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
