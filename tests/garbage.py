"""What is left for the search for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["garbage"]


@contextmanager
def garbage() -> Iterator[list[object]]:
    """At the end it has the objects of memshelf that were let go of and are not freed, since they hold each other."""
    found: list[object] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += (each for each in gc.garbage if type(each).__module__.startswith("memshelf"))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
