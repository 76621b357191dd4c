"""The command line: `memshelf ...`, also `python -m memshelf`.

Nothing here imports an agent framework; commands that talk to a model import it when they run.
"""

import os
import signal
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
    return code
