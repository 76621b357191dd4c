"""How a mem0 server is named and opened."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from memshelf.arguments import checked_argument
from memshelf.credentials import SecretsPolicy, check_policy
from memshelf.net.egress import httpx2, public_client
from memshelf.net.servers import server_address, server_key
from memshelf.records.backends.mem0.connection import Connection
from memshelf.records.backends.mem0.dialect import OSS, PLATFORM, Dialect
from memshelf.records.backends.mem0.store import Mem0RecordStore
from memshelf.records.protocol import RecordStore

__all__ = ["MEM0_OSS", "MEM0_PLATFORM", "Mem0Definition"]

_NAMESPACE_CHARS = 256
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Mem0Definition:
    """A kind of mem0 server."""

    dialect: Dialect

    @property
    def name(self) -> str:
        return self.dialect.name

    def open(
        self,
        configuration: Mapping[str, object],
        credential: Mapping[str, str] | None = None,
        *,
        namespace: str,
        http: httpx2.AsyncClient | None = None,
    ) -> AbstractAsyncContextManager[RecordStore]:
        """The records of one mem0 user. `ValueError` or `TypeError` for what is not as it must be; nothing is sent yet.

        `configuration` has `base_url`, the server's http(s) address, and may have `timeout`, how many seconds one
        request may take (30), and `secrets`, what becomes of a text with credentials in it ("warn"). `credential` has
        `api_key`. `namespace` is the `user_id`: 1 to 256 printable characters, no space and no `*`, which mem0 takes
        for everybody.

        Without `http`, the store has a client of its own, which reaches public HTTPS endpoints only. A given client is
        used as it is, and stays open.
        """
        checked_argument("configuration", configuration, Mapping)
        checked_argument("credential", credential, Mapping, None)
        checked_argument("http", http, httpx2.AsyncClient, None)
        base_url = server_address(configuration.get("base_url", self.dialect.base_url))
        timeout = configuration.get("timeout", _SECONDS)
        if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < 86_400:
            raise ValueError(f"timeout is a number of seconds over 0, not {timeout!r}.")
        _only(configuration, {"base_url", "timeout", "secrets"}, f"{self.name}: the configuration")
        secrets = check_policy(configuration.get("secrets", "warn"))
        headers = self._headers(credential or {})
        if not _is_namespace(namespace):
            raise ValueError(
                f"namespace is 1 to {_NAMESPACE_CHARS} printable characters without spaces and '*', not {namespace!r}."
            )
        return self._opened(base_url, headers, float(timeout), namespace, secrets, http)

    @contextlib.asynccontextmanager
    async def _opened(
        self,
        base_url: str,
        headers: Mapping[str, str],
        seconds: float,
        namespace: str,
        secrets: SecretsPolicy,
        http: httpx2.AsyncClient | None,
    ) -> AsyncIterator[RecordStore]:
        async with contextlib.AsyncExitStack() as stack:
            client = http if http is not None else await stack.enter_async_context(public_client(timeout=seconds))
            connection = Connection(client, base_url, headers, timeout=seconds)
            yield Mem0RecordStore(connection, self.dialect, namespace, secrets)

    def _headers(self, credential: Mapping[str, str]) -> dict[str, str]:
        _only(credential, {"api_key"}, f"{self.name}: the credential")
        key = credential.get("api_key")
        if key is None and not self.dialect.key_required:
            return {}
        return {self.dialect.key_header: f"{self.dialect.key_prefix}{server_key(key)}"}


def _is_namespace(value: object) -> bool:
    return (
        isinstance(value, str)
        and 1 <= len(value) <= _NAMESPACE_CHARS
        and value.isprintable()
        and " " not in value
        and "*" not in value
    )


def _only(given: Mapping[str, object], known: set[str], what: str) -> None:
    if unknown := sorted(set(given) - known):
        raise ValueError(f"{what} has {', '.join(unknown)}, which means nothing here.")


MEM0_OSS = Mem0Definition(OSS)
MEM0_PLATFORM = Mem0Definition(PLATFORM)
