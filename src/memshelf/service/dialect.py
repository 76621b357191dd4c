"""Which of the platforms' protocols a request speaks, by its headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memshelf.service.errors import ApiError, invalid_request

__all__ = ["ANTHROPIC", "Dialect", "dialect_of", "require_headers"]

Headers = Mapping[bytes, bytes]

_OLD = "managed-agents-2026-05-26"
_NEW = "managed-agents-2026-09-22"
_ZAI_VERSION = b"2026-05-26"
_MANAGED_AGENTS = "managed-agents-2026-04-01"
_AGENT_MEMORY = "agent-memory-2026-07-22"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How answers and a few rules differ: see the properties. `old` is the protocol before the current one."""

    name: Literal["anthropic", "zhipu"]
    old: bool = False

    @property
    def zhipu(self) -> bool:
        return self.name == "zhipu"

    @property
    def created(self) -> int:
        """The status of an answer to creating a store or a memory."""
        return 201 if self.old else 200

    @property
    def most_levels(self) -> int:
        """The greatest `depth` of a listing."""
        return 1_024 if self.zhipu else 1

    @property
    def session_prefix(self) -> Literal["sesn", "sess"]:
        return "sess" if self.zhipu else "sesn"


ANTHROPIC = Dialect("anthropic")
_ZHIPU = Dialect("zhipu")
_ZHIPU_OLD = Dialect("zhipu", old=True)


def dialect_of(headers: Headers) -> Dialect:
    """`zai-` headers choose the Zhipu dialect, in the protocol that they name; without them it is Anthropic's."""
    beta = headers.get(b"zai-beta")
    if beta is None:
        return ANTHROPIC if b"zai-version" not in headers else _ZHIPU
    named = _values(beta)
    return _ZHIPU_OLD if _OLD in named and _NEW not in named else _ZHIPU


def require_headers(dialect: Dialect, headers: Headers, *, memory: bool) -> None:
    """Refuse headers that the platform would refuse. `memory` says whether it is a memory endpoint."""
    if problem := _problem(dialect, headers, memory=memory):
        raise problem


def _problem(dialect: Dialect, headers: Headers, *, memory: bool) -> ApiError | None:
    if dialect.zhipu:
        if headers.get(b"zai-version") != _ZAI_VERSION:
            return invalid_request(f"zai-version: {_ZAI_VERSION.decode()} is required.")
        if not _values(headers.get(b"zai-beta", b"")) & {_OLD, _NEW}:
            return invalid_request(f"zai-beta: {_NEW} or {_OLD} is required.")
        return None
    if b"anthropic-version" not in headers:
        return invalid_request("anthropic-version: this header is required.")
    named = _values(headers.get(b"anthropic-beta", b"")) & {_MANAGED_AGENTS, _AGENT_MEMORY}
    if not memory:
        return None if _MANAGED_AGENTS in named else invalid_request(f"anthropic-beta: {_MANAGED_AGENTS} is required.")
    if len(named) != 1:
        return invalid_request(f"anthropic-beta: exactly one of {_AGENT_MEMORY} and {_MANAGED_AGENTS} is required.")
    return None


def _values(header: bytes) -> set[str]:
    return {value.strip() for value in header.decode("latin-1").split(",")}
