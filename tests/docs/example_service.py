"""A service for the documents' examples, with the address and key that they take from the environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "service"))
from pages import Page
from serving import Service


def needed(page: Page) -> bool:
    return any("MEMSHELF_URL" in block.text for block in page.blocks)


@contextmanager
def serving(folder: Path) -> Iterator[dict[str, str]]:
    service = Service("--data", str(folder / "data"), log=folder / "service.log")
    try:
        yield {"MEMSHELF_URL": service.url, "MEMSHELF_KEY": service.first_key()}
    finally:
        service.close()
