"""Keeping NumPy's matrix products on the calling thread. Needs the extra `embed`."""

from __future__ import annotations

import os
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
        if _inside == 0 and _limit is None:
            if _controller is None:
                _controller = ThreadpoolController()
            _take_control(_controller)
            _limit = _controller.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                assert _controller is not None  # noqa: S101  # it was there when the first one entered
                _take_control(_controller)
                _limit.restore_original_limits()  # type: ignore[attr-defined]  # threadpoolctl has no types
                _limit = None


def _take_control(controller: ThreadpoolController) -> None:
    # For OpenBLAS, threadpoolctl heeds only the first thread that ever set a number, and any other in silence does not.
    for library in controller.lib_controllers:
        if hasattr(library, "clear_controlling_thread"):  # since 3.7
            library.clear_controlling_thread(force=True)


def _forget_parent() -> None:
    # Other threads of the parent's may have held the lock, and been within: they are not here to leave.
    global _inside, _lock
    _inside, _lock = 0, threading.Lock()


os.register_at_fork(after_in_child=_forget_parent)
