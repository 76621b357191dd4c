"""Keeping NumPy's matrix products on the calling thread. Needs the extra `embed`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]

_lock = threading.Lock()
_inside = 0
_limit: object = None
_controller: ThreadpoolController | None = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it, the libraries under NumPy use one thread each; with the last to leave, as many as before.

    With more threads than free cores, small products take a hundred times longer. The setting is the process's, and
    several threads may be within at once, so the first to enter sets it and the last to leave sets it back.
    """
    global _inside, _limit, _controller
    with _lock:
        if _inside == 0:
            if _controller is None:
                _controller = ThreadpoolController()
            _limit = _controller.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()  # type: ignore[attr-defined]  # threadpoolctl has no types
                _limit = None
