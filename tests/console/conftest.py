"""A console in this process, and a browser without a window that visits it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from visiting import Browser, Host


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    """A service with its console, and the key of a workspace."""
    host = Host(tmp_path)
    await host.begin()
    yield host
    await host.aclose()


@pytest.fixture
def visitor(host: Host) -> Callable[[], Browser]:
    return host.browser


@pytest.fixture
async def browser(host: Host) -> Browser:
    """Somebody who is signed in."""
    browser = host.browser()
    await browser.sign_in(host.key)
    return browser
