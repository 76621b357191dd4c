"""What stands at a path. When the system does not say, that is an `OSError`, and never a no.

`os.path`, and `pathlib` from Python 3.14 on, answer no in that case: what cannot be looked at would be missing.
"""

from __future__ import annotations

import errno
import os
import stat

__all__ = ["is_directory", "is_file", "stands"]

_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def stands(path: str | os.PathLike[str]) -> bool:
    """Whether there is anything, behind symbolic links."""
    return _mode(path) is not None


def is_directory(path: str | os.PathLike[str]) -> bool:
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def is_file(path: str | os.PathLike[str]) -> bool:
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def _mode(path: str | os.PathLike[str]) -> int | None:
    try:
        return os.stat(path).st_mode
    except OSError as error:
        if error.errno not in _NOTHING:
            raise
    except ValueError:  # a name that no system could have
        pass
    return None
