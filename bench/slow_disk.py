"""A disk on which a sync takes longer, as on most servers: a library that waits in each sync of a process it is loaded
into. It needs Linux and a C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["available", "slow_disk"]

_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static int after_a_wait(const char *name, int descriptor) {
    struct timespec wait = {0, MICROSECONDS * 1000L};
    nanosleep(&wait, 0);
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(descriptor);
}
int fsync(int descriptor) { return after_a_wait("fsync", descriptor); }
int fdatasync(int descriptor) { return after_a_wait("fdatasync", descriptor); }
"""


def available() -> bool:
    return sys.platform == "linux" and shutil.which("cc") is not None


@contextmanager
def slow_disk(milliseconds: int) -> Iterator[None]:
    """For the processes that are started meanwhile, a sync takes so much longer."""
    with tempfile.TemporaryDirectory(prefix="memshelf-bench-") as place:
        Path(place).chmod(0o755)  # a server that runs as somebody else loads it too
        library = f"{place}/slow.so"
        options = ["-shared", "-fPIC", f"-DMICROSECONDS={milliseconds}000", "-o", library]
        subprocess.run(["cc", *options, "-x", "c", "-", "-ldl"], input=_LIBRARY.encode(), check=True)
        os.environ["LD_PRELOAD"] = library
        try:
            yield
        finally:
            del os.environ["LD_PRELOAD"]
