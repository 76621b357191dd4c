"""Answers made from values, as JSON values; times are left to the encoder, which writes them in UTC with `Z`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from memshelf.files.model import Version
from memshelf.mounts.mount import StoreMount
from memshelf.mounts.sessions import Session
from memshelf.origin import Origin
from memshelf.service.dialect import Dialect
from memshelf.stores.model import Memory, Page, Prefix, Store
from memshelf.stores.rules import wire_path

__all__ = ["KEY_PREFIX", "memory", "memory_item", "mount", "page", "session", "store", "version"]

Json = dict[str, Any]  # JSON has many types
T = TypeVar("T")

KEY_PREFIX = "apikey_"
"""How the id of every API key begins, and no user's."""


def page(found: Page[T], render: Callable[[T], Json]) -> Json:
    return {"data": [render(item) for item in found.items], "next_page": found.next_page}


def store(value: Store) -> Json:
    return {
        "id": value.id,
        "type": "memory_store",
        "name": value.name,
        "description": value.description,
        "metadata": value.metadata,
        "created_at": value.created_at,
        "updated_at": value.updated_at,
        "archived_at": value.archived_at,
    }


def memory(value: Memory, *, content: bool) -> Json:
    return {
        "id": value.id,
        "type": "memory",
        "memory_store_id": value.store_id,
        "path": value.path,
        "content": value.content if content else None,
        "content_size_bytes": value.size,
        "content_sha256": value.sha256,
        "memory_version_id": value.version_id,
        "created_at": value.created_at,
        "updated_at": value.updated_at,
    }


def memory_item(value: Memory | Prefix) -> Json:
    if isinstance(value, Prefix):
        return {"type": "memory_prefix", "path": value.path}
    return memory(value, content=True)


def version(value: Version, store_id: str, dialect: Dialect) -> Json:
    return {
        "id": value.id,
        "type": "memory_version",
        "memory_store_id": store_id,
        "memory_id": value.file_id,
        "operation": value.operation,
        "path": wire_path(value.path) if value.path is not None else None,
        "content": value.text,
        "content_size_bytes": value.size,
        "content_sha256": value.sha256,
        "created_at": value.created_at,
        "created_by": _author(value.origin, dialect),
        "redacted_at": value.redacted_at,
        "redacted_by": _redactor(value.redacted_by, dialect),
    }


def _author(origin: Origin, dialect: Dialect) -> Json | None:
    if origin.session_id is not None:
        return {"type": "session_actor", "session_id": origin.session_id}
    if origin.api_key_id is not None:
        return _key(origin.api_key_id, dialect)
    if origin.principal_id is not None:
        return {"type": "user_actor", "user_id": origin.principal_id}
    return None


def _redactor(by: str | None, dialect: Dialect) -> Json | None:
    if by is None:
        return None
    return _key(by, dialect) if by.startswith(KEY_PREFIX) else {"type": "user_actor", "user_id": by}


def _key(id: str, dialect: Dialect) -> Json:
    """Who calls the API: to the Zhipu platform, a user."""
    return {"type": "user_actor", "user_id": id} if dialect.zhipu else {"type": "api_actor", "api_key_id": id}


def mount(value: StoreMount) -> Json:
    return {
        "type": "memory_store",
        "memory_store_id": value.store_id,
        "access": value.access,
        "instructions": value.instructions,
        "name": value.name,
        "description": value.description,
        "mount_path": value.path,
    }


def session(value: Session, now: datetime) -> Json:
    ended = value.updated_at if value.status == "terminated" else now
    return {
        "id": value.id,
        "type": "session",
        "agent": {
            "type": "agent",
            "id": value.agent_id,
            "version": value.agent_version,
            "name": value.agent_id,
            "description": None,
            "system": None,
            "model": {"id": "unknown"},
            "execution_identity": {"type": "service_account"},
            "mcp_servers": [],
            "skills": [],
            "tools": [],
            "multiagent": None,
        },
        "environment_id": value.environment_id,
        "title": value.title,
        "metadata": value.metadata,
        "status": value.status,
        "resources": [mount(each) for each in value.mounts],
        "vault_ids": [],
        "outcome_evaluations": [],
        "stats": {"active_seconds": None, "duration_seconds": max(0.0, (ended - value.created_at).total_seconds())},
        "usage": {"input_tokens": None, "output_tokens": None},
        "created_at": value.created_at,
        "updated_at": value.updated_at,
        "archived_at": value.archived_at,
        "budget": None,
        "deployment_id": None,
    }
