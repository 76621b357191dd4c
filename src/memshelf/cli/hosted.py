"""What `memshelf stores | memories | versions` share: a service on a URL, or the same service on local data."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeAlias
from urllib.parse import quote

import click
from click.core import ParameterSource

from memshelf.cli.answers import Answer
from memshelf.cli.command import Unavailable, in_words_of_options
from memshelf.cli.memory import disk_path, origin
from memshelf.cli.serve import chosen_data, data_option, database_option, engine_of
from memshelf.errors import ErrorCode, MemoryStoreError
from memshelf.limits import FileFormat, StoreLimits
from memshelf.mounted import Json
from memshelf.service.data import has_data

if TYPE_CHECKING:
    import httpx2

    from memshelf.files.backends.http import MemoryStoreFileStore, PlatformFileStore
    from memshelf.files.backends.http.connection import Connection, RefusedError

    HostedFiles: TypeAlias = MemoryStoreFileStore | PlatformFileStore

__all__ = ["FORMAT", "Api", "extension", "hosted", "memory_argument", "store_argument"]

Params = ParamSpec("Params")

FORMAT = FileFormat(max_file_bytes=StoreLimits().content_bytes, path_bytes=StoreLimits().path_bytes - 1)
_LOCAL = "http://memshelf.local"
_CODES: Mapping[str, ErrorCode] = {
    "memory_path_conflict_error": "already_exists",
    "memory_precondition_failed_error": "version_mismatch",
}

store_argument = click.argument("store")
memory_argument = click.argument("memory")


@dataclass(frozen=True, slots=True)
class _Place:
    url: str | None
    key: str | None
    data: str | None
    database: str | None
    workspace: str
    dialect: Literal["anthropic", "zhipu"]


class Api:
    """The API that a command speaks to."""

    def __init__(self, connection: Connection, files_of: Callable[[str], Awaitable[HostedFiles]]) -> None:
        self._connection = connection
        self._files_of = files_of

    @asynccontextmanager
    async def files(self, store: str) -> AsyncIterator[HostedFiles]:
        """The store at a path as a file memory."""
        opened = await self._files_of(store.rpartition("/")[2])
        try:
            yield opened
        finally:
            await opened.aclose()

    async def get(self, path: str, **query: Any) -> Json:
        """`query` without what is `None`."""
        from memshelf.files.backends.http.connection import RefusedError

        try:
            return await self._connection.ask(path, Answer.of, _given(query))
        except RefusedError as refused:
            raise _explained(refused) from None

    async def change(
        self, method: Literal["POST", "DELETE"], path: str, body: Json | None = None, **query: Any
    ) -> Json:
        """`write_unconfirmed` when the reply was lost."""
        from memshelf.files.backends.http.connection import LostReplyError, RefusedError, unconfirmed

        try:
            return await self._connection.change(method, path, Answer.of, body, _given(query))
        except RefusedError as refused:
            raise _explained(refused) from None
        except LostReplyError as lost:
            raise unconfirmed(lost) from None

    async def items(self, path: str, *, most: int | None = None, **query: Any) -> AsyncIterator[Json]:
        """The items of a listing, page after page."""
        page: str | None = None
        pages: set[str] = set()
        count = 0
        while True:
            left = 100 if most is None else min(100, most - count)
            answer = await self.get(path, limit=left, page=page, **query)
            for item in answer["data"]:
                yield item
                count += 1
            page = answer["next_page"]
            if not page or count == most:
                return
            if page in pages:
                raise MemoryStoreError("unavailable", "The server's listing does not end.")
            pages.add(page)

    async def store(self, named: str) -> str:
        """The path of the store with this id, or with this name if only one has it."""
        if not named.startswith("memstore_"):
            found = [store["id"] async for store in self.items("/v1/memory_stores") if store["name"] == named]
            if not found:
                raise MemoryStoreError("not_found", f"There is no memory store {named}.")
            if len(found) > 1:
                raise click.UsageError(f"{len(found)} stores have the name {named}; give an id: {', '.join(found)}.")
            named = found[0]
        return f"/v1/memory_stores/{quote(named, safe='')}"

    async def memory(self, store: str, named: str) -> Json:
        """The memory with this path or id, with its content."""
        if named.startswith("mem_"):
            return await self.get(f"{store}/memories/{quote(named, safe='')}", view="full")
        if not named.startswith("/"):
            raise click.UsageError("A memory is named by its path, which begins with /, or by its id, mem_...")
        prefix = f"{named.rpartition('/')[0]}/"
        async for item in self.items(f"{store}/memories", path_prefix=prefix, depth=1):
            if item["type"] == "memory" and item["path"] == named:
                return await self.get(f"{store}/memories/{quote(item['id'], safe='')}", view="full")
        raise MemoryStoreError("not_found", f"There is no memory at {named}.")

    async def delete_memory(self, store: str, memory: Json) -> Json:
        """Delete a memory, unless it is no longer as it was when `memory` was answered."""
        path = f"{store}/memories/{quote(memory['id'], safe='')}"
        return await self.change("DELETE", path, expected_content_sha256=memory["content_sha256"])


def extension(path: str) -> str:
    """The path of what only memshelf offers for a resource."""
    return path.replace("/v1/", "/v1/memshelf/", 1)


def hosted(
    command: Callable[Concatenate[Api, Params], Awaitable[None]],
) -> Callable[..., None]:
    """Run a command's coroutine with the API that its options name."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        names = ("url", "key", "data", "database", "workspace", "dialect")
        place = _chosen(_Place(**{name: kwargs.pop(name) for name in names}))
        asyncio.run(_run(place, command, args, kwargs))

    for option in (_dialect_option, _workspace_option, database_option, data_option, _key_option, _url_option):
        run = option(run)
    return run


_url_option = click.option(
    "--url", metavar="URL", envvar="MEMSHELF_URL", show_envvar=True, help="The service, such as http://127.0.0.1:8080."
)
_key_option = click.option(
    "--key",
    metavar="KEY",
    envvar="MEMSHELF_KEY",
    show_envvar=True,
    help="An API key of the service; safer in the variable, as others see a command line.",
)
_workspace_option = click.option(
    "--workspace", metavar="NAME", default="default", show_default=True, help="Which workspace of local data."
)
_dialect_option = click.option(
    "--dialect",
    type=click.Choice(["anthropic", "zhipu"]),
    default="anthropic",
    show_default=True,
    help="Whose protocol headers to send to URL.",
)


def _chosen(place: _Place) -> _Place:
    """Either the URL or the local data; what is typed goes before what the environment says."""
    local = place.data is not None or place.database is not None
    if place.url is not None and local:
        context = click.get_current_context()
        typed = [
            name
            for name in ("url", "data", "database")
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        ]
        if "url" in typed and len(typed) > 1:
            raise click.UsageError("Give --url, or --data or --database, not both.")
        if not typed:
            raise click.UsageError("MEMSHELF_URL and MEMSHELF_DATA are both set: say --url or --data.")
        local = "url" not in typed
    if local:
        return _Place(None, None, *chosen_data(place.data, place.database), place.workspace, place.dialect)
    if place.url is None:
        raise click.UsageError("Say where the stores are: --url URL with --key KEY, or --data DIR.")
    if not place.key:
        raise click.UsageError("A service asks for a key: --key KEY, or the variable MEMSHELF_KEY.")
    return _Place(place.url, place.key, None, None, place.workspace, place.dialect)


async def _run(place: _Place, command: Callable[..., Awaitable[None]], args: Any, kwargs: Any) -> None:
    try:
        connections = import_module("memshelf.files.backends.http.connection")
        if place.url is None:
            import_module("memshelf.service.local")
    except ModuleNotFoundError as error:
        if place.url is not None:
            raise Unavailable(str(error)) from None
        raise Unavailable(
            f'Stores on local data need two extras: pip install "memshelf[http,service]" ({error.name} is missing).'
        ) from None
    from memshelf.files.backends.http import MemoryStoreFileStore, open_memory_store

    headers = connections.ZHIPU_HEADERS if place.dialect == "zhipu" else connections.ANTHROPIC_HEADERS
    if place.url is not None and place.key is not None:
        with in_words_of_options(base_url="--url", api_key="--key"):
            connection = connections.Connection(place.url, place.key, headers=headers)
        opening = functools.partial(open_memory_store, place.url, place.key, headers=headers, format=FORMAT)
        try:
            await command(Api(connection, opening), *args, **kwargs)
        finally:
            await connection.aclose()
        return
    async with _local(place) as client:

        async def files_of(store: str) -> HostedFiles:
            return MemoryStoreFileStore(_LOCAL, "local", store, client=client, format=FORMAT)

        connection = connections.Connection(_LOCAL, "local", client=client, timeout=600)
        await command(Api(connection, files_of), *args, **kwargs)


@asynccontextmanager
async def _local(place: _Place) -> AsyncIterator[httpx2.AsyncClient]:
    """The service itself, in this process, for the user of the operating system. `unknown_memory` without data."""
    from memshelf.service import local

    if place.data is not None and not has_data(disk_path(place.data)):
        raise MemoryStoreError("unknown_memory", f"There is no service's data in {place.data}.")
    engine = engine_of(place.data, place.database)
    async with local.client_of(engine, place.workspace, str(origin().principal_id)) as client:
        yield client


def _given(query: Mapping[str, Any]) -> dict[str, str | int]:
    return {name: value for name, value in query.items() if value is not None}


def _explained(refused: RefusedError) -> MemoryStoreError:
    return MemoryStoreError(_CODES.get(refused.kind, refused.code), refused.message)
