"""The official SDK, of whichever version is installed, against a service that somebody else has started."""

from __future__ import annotations

import os
from collections.abc import Iterator

import anthropic
import pytest

DIALECTS = {
    "anthropic": ("", {}),
    "zhipu": ("/api/agent/managed", {"zai-version": "2026-05-26", "zai-beta": "managed-agents-2026-09-22"}),
    "zhipu-old": ("/api/agent/managed", {"zai-version": "2026-05-26", "zai-beta": "managed-agents-2026-05-26"}),
}


@pytest.fixture(scope="session", params=os.environ.get("MEMSHELF_TEST_DIALECTS", "").split())
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def options(dialect: str) -> dict[str, object]:
    base, headers = DIALECTS[dialect]
    return {
        "api_key": os.environ["MEMSHELF_TEST_KEY"],
        "base_url": os.environ["MEMSHELF_TEST_URL"] + base,
        "default_headers": headers,
        "max_retries": 0,
        "_strict_response_validation": True,
    }


@pytest.fixture(scope="session")
def client(options: dict[str, object]) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(**options) as client:  # type: ignore[arg-type]  # as they are documented
        yield client
