"""Requests to a memory store's server, and what their answers mean.

A request that was sent and not answered as it should be has an unknown outcome: for a read that is `unavailable`, for
a change it is `LostReplyError`, which the store settles by reading back. Nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from memshelf.arguments import checked_argument
from memshelf.errors import ErrorCode, MemoryStoreError
from memshelf.files.model import FileText
from memshelf.net.answer import AnswerError, read_answer
from memshelf.net.servers import server_address, server_key
from memshelf.untrusted import is_sound, sound

try:
    import httpx2
except ModuleNotFoundError as error:
    if error.name != "httpx2":
        raise
    raise ModuleNotFoundError(
        'Hosted memory stores need the extra "http", which is not installed: pip install "memshelf[http]"',
        name="httpx2",
    ) from error

__all__ = [
    "ANTHROPIC_HEADERS",
    "ZHIPU_HEADERS",
    "Connection",
    "Json",
    "LostReplyError",
    "Query",
    "RefusedError",
    "unconfirmed",
]

T = TypeVar("T")

Json: TypeAlias = dict[str, Any]  # JSON has many types
Query: TypeAlias = Mapping[str, str | int]
Method: TypeAlias = Literal["GET", "POST", "DELETE"]

ANTHROPIC_HEADERS: Mapping[str, str] = MappingProxyType(
    {"anthropic-version": "2023-06-01", "anthropic-beta": "agent-memory-2026-07-22"}
)
ZHIPU_HEADERS: Mapping[str, str] = MappingProxyType(
    {"zai-version": "2026-05-26", "zai-beta": "managed-agents-2026-09-22"}
)

_CODES: Mapping[str, ErrorCode] = {code: code for code in get_args(ErrorCode)}
_MESSAGE_CHARS = 500
_NOT_BEGUN = (429, 529)
"""Statuses of servers that turned a request away before they began with it."""


class LostReplyError(Exception):
    """A change was sent, and whether it was made is not known."""


class RefusedError(MemoryStoreError):
    """The server answered that it did not do it: nothing changed. `kind` is the `type` of the error in its answer,
    `details` the whole error."""

    def __init__(self, code: ErrorCode, message: str, status: int, details: Json, current: FileText | None) -> None:
        super().__init__(code, message, current=current)
        self.status = status
        self.details = details

    def __reduce__(self) -> tuple[object, ...]:
        return RefusedError, (self.code, self.message, self.status, self.details, self.current)

    @property
    def kind(self) -> str:
        return str(self.details.get("type", ""))

    def plainly(self) -> MemoryStoreError:
        return MemoryStoreError(self.code, self.message, current=self.current)


class Connection:
    """One store on a server. Without a `client` it has one of its own in each event loop: connections belong to the
    loop that opened them, and of a loop that has ended nothing can be used again."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        headers: Mapping[str, str] = ANTHROPIC_HEADERS,
        client: httpx2.AsyncClient | None = None,
        timeout: float = 30.0,
        max_answer_bytes: int = 67_108_864,
    ) -> None:
        self._base = server_address(base_url)
        checked_argument("timeout", timeout, float, int)
        checked_argument("max_answer_bytes", max_answer_bytes, int)
        if timeout <= 0 or max_answer_bytes < 1:
            raise ValueError("timeout and max_answer_bytes are over 0.")
        self._key = server_key(api_key)
        self._headers = {
            **checked_argument("headers", headers, Mapping),
            "authorization": f"Bearer {api_key}",
            "accept": "application/json",
            "accept-encoding": "identity",
        }
        self._given = checked_argument("client", client, httpx2.AsyncClient, None)
        self._own: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}
        self._timeout = timeout
        self._most = max_answer_bytes

    async def aclose(self) -> None:
        """Close the connections of this event loop, unless the client was given."""
        own = self._own.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.aclose()

    async def ask(self, path: str, parse: Callable[[Json], T], query: Query | None = None) -> T:
        """The parsed answer to a question. `RefusedError`, `unavailable`."""
        try:
            return parse(await self._send("GET", path, query, None))
        except LostReplyError as lost:
            raise MemoryStoreError("unavailable", str(lost)) from None

    async def change(
        self,
        method: Method,
        path: str,
        parse: Callable[[Json], T],
        body: Json | None = None,
        query: Query | None = None,
    ) -> T:
        """The parsed answer to a request to change something. `RefusedError`, `unavailable`: it was not made;
        `LostReplyError`: that is not known."""
        return parse(await self._send(method, path, query, body))

    async def _send(self, method: Method, path: str, query: Query | None, body: Json | None) -> Json:
        client = self._given or self._own_client()
        headers = dict(self._headers)
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        request = client.build_request(
            method,
            f"{self._base}{path}",
            params=dict(query) if query is not None else None,
            headers=headers,
            content=content,
            timeout=self._timeout,
        )
        try:
            status, data = await read_answer(client, request, seconds=self._timeout, most_bytes=self._most)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol) as failure:
            raise MemoryStoreError("unavailable", f"{_not_reached(failure)}; nothing changed.") from None
        except AnswerError as unreadable:
            raise LostReplyError(str(unreadable)) from None
        except httpx2.HTTPError as failure:
            raise LostReplyError(f"The server's answer was lost ({type(failure).__name__}).") from None
        return self._judged(status, data)

    def _own_client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._own.get(loop)
        if client is None:
            for ended in [each for each in list(self._own) if each.is_closed()]:
                self._own.pop(ended, None)  # another thread may be here as well
            # Proxies and certificates from the environment are the host's business: it may give its own client.
            client = self._own[loop] = httpx2.AsyncClient(trust_env=False)
        return client

    def _judged(self, status: int, data: bytes) -> Json:
        if 300 <= status < 400:
            raise LostReplyError(f"The server answered with a redirect ({status}), which is not followed.")
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        if 200 <= status < 300:
            if not isinstance(answer, dict):
                raise LostReplyError("The server's answer is not JSON as a memory store gives it.")
            return answer
        error = answer.get("error") if isinstance(answer, dict) else None
        details: Json = error if isinstance(error, dict) else {}
        code, named = _code(status, details)
        if code is None or code == "write_unconfirmed":
            raise LostReplyError(f"The server failed with status {status}.")
        refused = RefusedError(code, self._message(status, details), status, details, _current(details))
        raise refused.plainly() if named else refused

    def _message(self, status: int, details: Json) -> str:
        said = details.get("message")
        if status in (401, 403) and "memshelf_code" not in details:
            does_not = "does not know this API key" if status == 401 else "does not let this API key do that"
            return f"The server {does_not} (status {status}): check the key; nothing changed."
        if not isinstance(said, str) or not said:
            where = ": check its address" if status == 404 else ""
            return f"The server refused with status {status}{where}; nothing changed."
        return sound(said.replace(self._key, "[key]")[:_MESSAGE_CHARS])


def _not_reached(failure: BaseException) -> str:
    """Why a request did not get there. What is wrong with TLS is named: who meets that can do something about it."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"The server's certificate is not trusted ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return "TLS with the server failed: check its address, which begins with http:// if the server has no TLS"
        cause = cause.__cause__ or cause.__context__
    return f"The server cannot be reached ({type(failure).__name__}): check its address"


def _code(status: int, details: Json) -> tuple[ErrorCode | None, bool]:
    """What an error means, `None` when that is not known, and whether the server itself named the code."""
    said = details.get("memshelf_code")
    if isinstance(said, str) and said in _CODES:
        return _CODES[said], True
    if status in _NOT_BEGUN:
        return "unavailable", False
    if status in (401, 403):
        return "forbidden", False
    if status == 404:
        return "not_found", False
    if status == 409:
        return "conflict", False
    if status == 413:
        return "too_large", False
    if status >= 500 or status == 408 or status < 200:
        return None, False
    return "invalid_value", False


def _current(details: Json) -> FileText | None:
    current = details.get("memshelf_current")
    if not isinstance(current, dict):
        return None
    path, text, version = (current.get(name) for name in ("path", "text", "version"))
    if isinstance(path, str) and isinstance(text, str) and isinstance(version, str):
        return FileText(path, text, version) if all(map(is_sound, (path, text, version))) else None
    return None


def unconfirmed(lost: LostReplyError) -> MemoryStoreError:
    return MemoryStoreError(
        "write_unconfirmed", f"{lost} The change may or may not have been made; look before making it again."
    )
