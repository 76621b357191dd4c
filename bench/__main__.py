"""`make bench`, or `python -m bench [directory] [sqlite] [postgres] [context] [service]`."""

from __future__ import annotations

import asyncio
import platform
import sys
import tempfile
from pathlib import Path

from bench import context, directory, postgres, service, sqlite

BENCHMARKS = {
    "directory": directory.run,
    "sqlite": sqlite.run,
    "postgres": postgres.run,
    "context": context.run,
    "service": service.run,
}


def main() -> None:
    chosen = sys.argv[1:] or list(BENCHMARKS)
    if unknown := set(chosen) - set(BENCHMARKS):
        sys.exit(f"Unknown benchmark: {', '.join(sorted(unknown))}. There are {', '.join(BENCHMARKS)}.")
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="memshelf-bench-", dir=".") as place:
            asyncio.run(BENCHMARKS[name](Path(place)))


if __name__ == "__main__":
    main()
