"""Knowing in a forked child that what it inherited is its parent's.

The parent's threads are not in the child. A lock that one of them held is never given back there, and what the lock
guards may be half changed. So what has threads or such locks is made anew with its first use in a child: a lock of a
module by `os.register_at_fork`, what an object knows by asking its `Process`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

__all__ = ["Process"]


class Process:
    """The process that something was made in."""

    __slots__ = ("_id",)

    def __init__(self) -> None:
        self._id = os.getpid()

    @property
    def here(self) -> bool:
        """Whether it is this one."""
        return self._id == os.getpid()

    def forked(self, forget: Callable[[], object]) -> bool:
        """Whether this is a child of it, which from now on is the process; so it is said once.

        Then `forget` has let go of what was the parent's, before any other thread was answered.
        """
        if self.here:
            return False
        with _turn:
            if self.here:
                return False
            forget()
            self._id = os.getpid()
            return True


_turn = threading.RLock()  # what is made anew may ask for others that are


def _forget_parent() -> None:
    global _turn
    _turn = threading.RLock()


os.register_at_fork(after_in_child=_forget_parent)
