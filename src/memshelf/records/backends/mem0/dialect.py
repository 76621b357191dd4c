"""The requests of mem0's two servers, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["OSS", "PLATFORM", "Dialect", "Request"]

Json: TypeAlias = dict[str, Any]  # JSON has many types

_ID = re.compile(r"(?!\.+\Z)[A-Za-z0-9._:@~+=-]{1,256}")
"""What fits one segment of a path and nothing else: an empty id, or `..`, would turn one record's path into that of
all of them."""


@dataclass(frozen=True, slots=True)
class Request:
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    query: Mapping[str, str | int] | None = None
    body: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """`page_size` is how many records are asked for at once; `paged`, whether there is more than one page. `events` is
    where the server says what became of an add that it carries out later, if it does that."""

    name: str
    base_url: str | None
    key_header: str
    key_prefix: str
    key_required: bool
    root: str
    add_path: str
    search_path: str
    end: str
    page_size: int
    paged: bool
    events: str | None

    def add(self, namespace: str, text: str) -> Request:
        message = {"role": "user", "content": text}
        return Request("POST", self.add_path, None, {"messages": [message], "user_id": namespace, "infer": False})

    def search(self, namespace: str, query: str, limit: int) -> Request:
        body = {"query": query, "filters": {"user_id": namespace}, "top_k": limit}
        return Request("POST", self.search_path, None, body)

    def page(self, namespace: str, number: int) -> Request:
        """Pages count from 0."""
        if self.paged:
            query = {"page": number + 1, "page_size": self.page_size}
            return Request("POST", "/v3/memories/", query, {"filters": {"user_id": namespace}})
        return Request("GET", "/memories", {"user_id": namespace, "top_k": self.page_size})

    def get(self, record_id: str) -> Request | None:
        """`None` for an id that no record can have."""
        return Request("GET", self._one(record_id)) if _ID.fullmatch(record_id) is not None else None

    def update(self, record_id: str, text: str) -> Request:
        """For a record that was found."""
        return Request("PUT", self._one(record_id), None, {"text": text})

    def delete(self, record_id: str) -> Request:
        """For a record that was found."""
        return Request("DELETE", self._one(record_id))

    def event(self, event_id: str) -> Request | None:
        """`None` for an event that cannot be asked for."""
        if self.events is None or _ID.fullmatch(event_id) is None:
            return None
        return Request("GET", f"{self.events}/{event_id}{self.end}")

    def purge(self, namespace: str) -> Request:
        return Request("DELETE", f"{self.root}{self.end}", {"user_id": namespace})

    def _one(self, record_id: str) -> str:
        return f"{self.root}/{record_id}{self.end}"


OSS = Dialect(
    name="mem0_oss",
    base_url=None,
    key_header="x-api-key",
    key_prefix="",
    key_required=False,
    root="/memories",
    add_path="/memories",
    search_path="/search",
    end="",
    page_size=1_000,
    paged=False,
    events=None,
)
PLATFORM = Dialect(
    name="mem0_platform",
    base_url="https://api.mem0.ai",
    key_header="authorization",
    key_prefix="Token ",
    key_required=True,
    root="/v1/memories",
    add_path="/v3/memories/add/",
    search_path="/v3/memories/search/",
    end="/",
    page_size=100,
    paged=True,
    events="/v1/event",
)
