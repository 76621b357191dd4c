"""From the headers of a request to its caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memshelf.service.accounts import Accounts, Caller, digest
from memshelf.service.errors import ApiError

__all__ = ["Gate"]

_MOST_REMEMBERED = 10_000


class Gate:
    """Knows whom a secret stands for, and asks the database again when it has known it for `seconds`."""

    def __init__(self, accounts: Accounts, seconds: float, clock: Callable[[], float]) -> None:
        self._accounts = accounts
        self._seconds = seconds
        self._clock = clock
        self._known: dict[bytes, tuple[Caller, float]] = {}

    async def caller(self, headers: Mapping[bytes, bytes]) -> Caller:
        """`authentication_error` without a valid secret, in `x-api-key` or as `Authorization: Bearer`;
        `permission_error` when the caller names another workspace than the secret's."""
        hash = digest(_secret(headers))
        known = self._known.get(hash)
        now = self._clock()
        if known is not None and now < known[1]:
            caller = known[0]
        else:
            found = await self._accounts.find(hash)
            if found is None:
                self._known.pop(hash, None)
                raise _unauthenticated("The API key is unknown, or was revoked.")
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            caller = found
            self._known[hash] = caller, now + self._seconds
        named = headers.get(b"anthropic-workspace-id")
        if named is not None and named.decode("latin-1") != caller.workspace_id:
            raise ApiError(403, "permission_error", "anthropic-workspace-id: it is not the workspace of this API key.")
        return caller


def _secret(headers: Mapping[bytes, bytes]) -> str:
    if key := headers.get(b"x-api-key"):
        return key.decode("latin-1")
    kind, _, token = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() != b"bearer" or not token.strip():
        raise _unauthenticated("Send an API key, in x-api-key or as Authorization: Bearer.")
    return token.strip().decode("latin-1")


def _unauthenticated(message: str) -> ApiError:
    return ApiError(401, "authentication_error", message, headers={"www-authenticate": "Bearer"})
