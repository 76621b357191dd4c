"""The command line: `memshelf ...`, also `python -m memshelf`.

Nothing here imports an agent framework; commands that talk to a model import it when they run.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence

__all__ = ["main"]

_INTERRUPTED = 130


def main(args: Sequence[str] | None = None) -> int:
    """`memshelf.cli.program.main`. Without `args` the process belongs to it, and Ctrl-C is no traceback either while it
    loads or ends."""
    try:
        from memshelf.cli.program import main as run

        code = run(args)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    if args is None:  # what remains is to wait for threads, whose work nobody waits for
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
        if code == _INTERRUPTED:
            _end_at_once()
    return code


def _end_at_once() -> None:
    """Interrupted again and again, tasks and threads may be anywhere, and have nothing to say that helps anybody."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(_INTERRUPTED)
