"""A client that reaches public HTTPS endpoints and nothing else.

For addresses that come from configuration: whoever writes it must not be able to make this machine ask its own
network, or the metadata service of its cloud.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

from memshelf.net.addresses import is_public

try:
    import httpcore2
    import httpx2 as httpx2  # whoever needs it gets it from here, with the error that names the extra
except ModuleNotFoundError as error:
    if error.name not in ("httpcore2", "httpx2"):
        raise
    raise ModuleNotFoundError(
        'Requests to servers need the extra "http", which is not installed: pip install "memshelf[http]"',
        name=error.name,
    ) from error

__all__ = ["EgressRefusedError", "Network", "PublicTransport", "public_client"]

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""The numeric addresses of a host, best first. An `OSError` when it has none."""


class EgressRefusedError(httpx2.ConnectError):
    """The request would have gone to a place that is not public. Nothing was sent."""


def public_client(*, timeout: float) -> httpx2.AsyncClient:
    """A client for public HTTPS endpoints.

    Every address is checked when it is connected to, and it is the checked address that is connected to: a name that
    changes what it stands for gains nothing. Redirects are not followed. Proxies, certificates and passwords that the
    environment or a `.netrc` name are ignored. `EgressRefusedError` is raised for what is not public HTTPS.
    """
    return httpx2.AsyncClient(transport=PublicTransport(), timeout=timeout, trust_env=False, follow_redirects=False)


async def _resolve(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Network(httpcore2.AsyncNetworkBackend):
    """Connects to public addresses only. `resolve` and `backend` are where names and connections come from."""

    def __init__(self, resolve: Resolve = _resolve, backend: httpcore2.AsyncNetworkBackend | None = None) -> None:
        self._resolve = resolve
        self._backend = backend or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the interface's own
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                failure: httpcore2.NetworkError | None = None
                for address in await self._public(host, port):
                    try:
                        return await self._backend.connect_tcp(address, port, None, local_address, socket_options)
                    except httpcore2.ConnectError as error:
                        failure = error
                raise failure or EgressRefusedError(f"{host} is not a public address; memshelf does not connect to it.")
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)

    async def _public(self, host: str, port: int) -> list[str]:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"{host} has no address ({type(error).__name__}).") from error
        return [address for address in addresses if is_public(address)]


class PublicTransport(httpx2.AsyncBaseTransport):
    """The transport of `public_client`."""

    def __init__(self, network: httpcore2.AsyncNetworkBackend | None = None) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(trust_env=False),
            max_connections=10,
            keepalive_expiry=5.0,
            network_backend=network or Network(),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.scheme != "https":
            raise EgressRefusedError(f"memshelf connects to HTTPS endpoints only, not {request.url.scheme}.")
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        with _translated():
            response = await self._pool.handle_async_request(
                httpcore2.Request(
                    request.method,
                    url,
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx2.Response(
            response.status, headers=response.headers, stream=_Body(response), extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for chunk in self._response.aiter_stream():
                yield chunk

    async def aclose(self) -> None:
        with _translated():
            await self._response.aclose()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Both packages name their errors alike."""
    try:
        yield
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        named = getattr(httpx2, type(error).__name__, httpx2.TransportError)
        raise named(str(error)) from error
